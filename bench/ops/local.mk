# Operators against ONNX Runtime: run by hand, in a virtual environment that has it.
EXTRA_DIST += %D%/bench.py %D%/cases.py %D%/executable.py

# ONNX's own cases, against lists of those that pass.
conformance_tests = %D%/debian %D%/onnx %D%/twins
TESTS += $(conformance_tests)
EXTRA_DIST += $(conformance_tests) %D%/cases.sh %D%/debian.txt %D%/onnx.txt %D%/twins.txt

# What the code looks like, as far as a test can tell.
style_tests = %D%/evaluation-order %D%/floors
TESTS += $(style_tests)
EXTRA_DIST += $(style_tests) %D%/floors.txt

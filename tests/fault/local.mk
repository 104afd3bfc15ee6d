# What goes wrong in a year, in seconds: short by default; LATHE_FAULT_SECONDS makes them long.
fault_tests = %D%/chaos-real-worker %D%/overload %D%/soak
TESTS += $(fault_tests)
EXTRA_DIST += $(fault_tests)

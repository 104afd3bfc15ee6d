# Real models, run and compared. The comparing is lathe suite's.
TESTS += %D%/models %D%/operators
EXTRA_DIST += %D%/models %D%/models.txt %D%/operators %D%/cases
CLEANFOLDERS += %D%/data

# Real models, run and compared. The comparing is lathe suite's.
TESTS += %D%/models
EXTRA_DIST += %D%/models %D%/models.txt
CLEANFOLDERS += %D%/data

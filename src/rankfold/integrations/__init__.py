"""rankfold inside other packages: one file for each, which needs that package and no other."""

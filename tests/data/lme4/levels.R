# Writes levels.csv: Rscript levels.R growth.csv chem.csv star.csv growth.csv > levels.csv
# The tables are those of mlmRev, as tests/unit/learners/test_levels.py reads them (`nested_sets`).
suppressMessages(library(lme4))
control <- lmerControl(optimizer = "bobyqa", optCtrl = list(rhoend = 1e-10, maxfun = 1e5), calc.derivs = FALSE)
formulas <- list(
  growth = math ~ year + (1 + year | school / child),
  chem = score ~ gcse + (1 + gcse | lea / school),
  star = math ~ minority + (1 + minority | school / teacher),
  growth_intercepts = math ~ year + (1 | school / child)
)
cat("set,name,value\n")
put <- function(set, name, value) cat(sprintf('%s,%s,%.9g\n', set, name, value))
for (i in seq_along(formulas)) {
  set <- names(formulas)[i]
  m <- lmer(formulas[[i]], data = read.csv(commandArgs(TRUE)[i]), REML = FALSE, control = control)
  put(set, "logLik", as.numeric(logLik(m)))
  for (name in names(fixef(m))) {
    put(set, name, fixef(m)[[name]])
    put(set, paste("error", name), coef(summary(m))[name, "Std. Error"])
  }
  for (j in seq_len(nrow(v <- as.data.frame(VarCorr(m))))) {
    # levels of the formula are written from the tasks upwards
    level <- if (v$grp[j] == "Residual") "noise" else if (grepl(":", v$grp[j])) "task" else "group"
    entry <- paste(level, v$var1[j], if (is.na(v$var2[j])) v$var1[j] else v$var2[j])
    put(set, if (level == "noise") "noise" else entry, v$vcov[j])
  }
  first <- ranef(m)[[2]]
  for (name in rownames(first)[1:3]) put(set, paste("effect", name), first[name, 1])
}

# Writes the numbers of tests/unit/fitted/test_summary.py: Rscript wages.R wages.csv
# wages.csv: condmeta.datasets.load_wages().to_frame(side=True).to_csv("wages.csv")
suppressMessages(library(lme4))
w <- read.csv(commandArgs(TRUE)[1])
control <- lmerControl(optimizer = "bobyqa", optCtrl = list(rhoend = 1e-10))
m <- lmer(lwage ~ exper * educ + (1 + exper | nr), data = w, REML = FALSE, control = control)
print(coef(summary(m)), digits = 9)
print(as.data.frame(VarCorr(m)), digits = 9)
print(logLik(m), digits = 12)

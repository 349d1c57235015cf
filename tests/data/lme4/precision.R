# Makes precision.csv (data) and precision.json (what lme4 finds), read by
# tests/unit/learners/test_precision.py. Run: cd tests/data/lme4 && Rscript precision.R
library(lme4)
set.seed(1)
g <- rep(1:24, times = rep(c(3, 5, 7), 8))
n <- length(g)
x <- round(rnorm(n), 3)
w <- sample(1:12, n, replace = TRUE)
u <- matrix(rnorm(48), 24) %*% matrix(c(1, 0.3, 0, 0.6), 2)
y <- round(1 + 2 * x + u[g, 1] + u[g, 2] * x + rnorm(n) * 1.4 / sqrt(w), 4)
write.csv(data.frame(g, x, w, y), "precision.csv", row.names = FALSE)

m <- lmer(y ~ x + (1 + x | g), weights = w, REML = FALSE,
          control = lmerControl(optimizer = "bobyqa", optCtrl = list(rhoend = 1e-10)))
V <- as.matrix(VarCorr(m)$g)
blup <- as.matrix(coef(m)$g)
row <- function(v) paste0("[", paste(format(v, digits = 15), collapse = ", "), "]")
writeLines(c(
  "{",
  paste0("\"lme4\": \"", packageVersion("lme4"), "\","),
  paste0("\"log_likelihood\": ", format(as.numeric(logLik(m)), digits = 15), ","),
  paste0("\"sigma\": ", format(sigma(m), digits = 15), ","),
  paste0("\"fixed\": ", row(fixef(m)), ","),
  paste0("\"covariance\": ", row(as.vector(V)), ","),
  paste0("\"intercepts\": ", row(blup[, 1]), ","),
  paste0("\"slopes\": ", row(blup[, 2])),
  "}"), "precision.json")

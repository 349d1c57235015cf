# Writes salamanders.csv, owls.csv and shared.csv beside it: Rscript shared.R FOLDER
# Both tables come with glmmTMB 1.1.5: Price et al. (2016), Journal of Applied Ecology, and Roulin
# and Bersier (2007), Animal Behaviour. Negative binomial counts with a random intercept; all other
# coefficients are the same for all tasks. Maximum likelihood by Laplace's approximation.
suppressMessages(library(glmmTMB))
folder <- commandArgs(TRUE)[1]
data(Salamanders)
data(Owls)
write <- function(table, name) write.csv(table, file.path(folder, name), row.names = FALSE, quote = FALSE)
write(Salamanders[, c("site", "mined", "spp", "count")], "salamanders.csv")
columns <- c("Nest", "FoodTreatment", "ArrivalTime", "SexParent", "BroodSize", "SiblingNegotiation")
write(Owls[, columns], "owls.csv")
values <- function(model, m) {
  found <- c(fixef(m)$cond, logLik = as.numeric(logLik(m)), variance = VarCorr(m)$cond[[1]][1, 1], alpha = 1 / sigma(m))
  data.frame(model = model, name = names(found), value = signif(found, 7))
}
salamanders <- glmmTMB(count ~ spp + mined + (1 | site), Salamanders, nbinom2)
owls <- glmmTMB(
  SiblingNegotiation ~ FoodTreatment + ArrivalTime + SexParent + offset(log(BroodSize)) + (1 | Nest),
  Owls, nbinom2
)
write(rbind(values("salamanders", salamanders), values("owls", owls)), "shared.csv")

"""glmmTMB through Rscript: a negative binomial model with fixed effects and a random intercept."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from condmeta.inner.likelihoods import NegativeBinomial
from condmeta.inner.row_posterior import solve_rows
from condmeta.tasks.points import Points

SCRIPT = """
suppressMessages(library(glmmTMB))
folder <- commandArgs(TRUE)[1]
train <- read.csv(file.path(folder, "train.csv"), stringsAsFactors = TRUE)
rows <- read.csv(file.path(folder, "rows.csv"), stringsAsFactors = TRUE)
names <- setdiff(names(train), c("y", "task", "offset"))
formula <- as.formula(paste("y ~", paste(names, collapse = " + "), "+ offset(offset) + (1 | task)"))
m <- suppressWarnings(glmmTMB(formula, train, nbinom2))
eta <- predict(m, newdata = rows, re.form = NA, type = "link", allow.new.levels = TRUE)
cat(VarCorr(m)$cond$task[1, 1], 1 / sigma(m), eta, sep = "\\n")
"""


class Mixed(NamedTuple):
    """The variance of the random intercept, alpha, and the fixed part of rows, with exposure."""

    variance: float
    alpha: float
    eta: np.ndarray


def is_here() -> bool:
    """Return whether R has the package glmmTMB."""
    if shutil.which("Rscript") is None:
        return False
    test = "quit(status = !requireNamespace('glmmTMB', quietly = TRUE))"
    return subprocess.run(["Rscript", "-e", test], capture_output=True).returncode == 0


def fit(table: pd.DataFrame, train: np.ndarray) -> Mixed:
    """Fit to the rows `train` of a table with y, task, offset and fixed effects; predict all."""
    with tempfile.TemporaryDirectory() as folder:
        table.iloc[train].to_csv(Path(folder) / "train.csv", index=False)
        table.to_csv(Path(folder) / "rows.csv", index=False)
        script = Path(folder) / "fit.R"
        script.write_text(SCRIPT)
        done = subprocess.run(
            ["Rscript", str(script), folder], capture_output=True, text=True, check=True
        )
    variance, alpha, *eta = map(float, done.stdout.split())
    return Mixed(variance, alpha, np.array(eta))


def log_density(model: Mixed, y, task, shown, judged) -> np.ndarray:
    """Return the log densities of `judged` rows, given the `shown` rows of their tasks."""
    if not len(judged):
        return np.empty(0)
    ids, codes = np.unique(task[judged], return_inverse=True)
    order = np.argsort(task[shown], kind="stable")
    shown = shown[order]
    sizes = np.array([np.sum(task[shown] == one) for one in ids])
    law, size = NegativeBinomial(model.alpha), np.exp(model.eta)
    weight = np.column_stack([np.ones(len(shown)), size[shown]])
    points = Points(np.ones((len(shown), 1)), y[shown], np.append(0, np.cumsum(sizes)), weight)
    found = solve_rows(law, points, np.zeros((len(ids), 1)), np.full((1, 1), model.variance**0.5))
    weight = np.column_stack([np.ones(len(judged)), size[judged]])
    query = Points(np.ones((len(judged), 1)), y[judged], np.array([0, len(judged)]), weight)
    mean, variance = found.coef[codes, 0], found.state.covariance[codes, 0, 0]
    return law.log_density(query, mean, variance)

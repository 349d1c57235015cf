"""Linear mixed models: each package estimates the parameters; a new task is predicted by the BLUP.

    y_t = F_t beta + Z_t b_t + noise,   b_t ~ N(0, G):
    E[b_t | support] = G Z^T (Z G Z^T + s2 I)^-1 (y - F beta).

F holds inputs, side columns and their products, Z the intercept and the inputs.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
import warnings
from importlib import import_module
from pathlib import Path

import numpy as np

from benchmarks.accuracy.design import Design, codes_of, independent, slices
from condmeta.tasks import TaskSet


class MixedModel:
    """The prediction that all share; a package brings `estimate`."""

    package = ""  # imported when the method is made: a fit is timed without it
    slopes = True  # whether inputs have coefficients of their own in a task

    def __init__(self):
        self.module = import_module(self.package)

    def fit(self, train: TaskSet) -> None:
        """Estimate beta, G and s2."""
        self.design = Design(train)
        F, Z = self.design.fixed(train), self._random(train)
        self.kept = independent(F)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of convergence: the error on new tasks judges
            self.beta, self.G, self.s2 = self.estimate(
                self.design.target(train), F[:, self.kept], Z, codes_of(train)
            )

    def estimate(self, y, F, Z, codes):
        """Return beta (p,), G (q, q), s2."""
        raise NotImplementedError

    def predict(self, support: TaskSet, query: TaskSet) -> np.ndarray:
        """Predict the query points, (N,)."""
        return self.predict_std(support, query)[0]

    def predict_std(self, support: TaskSet, query: TaskSet) -> tuple[np.ndarray, np.ndarray]:
        """Return predictions (N,), and standard deviations of labels around them (N,)."""
        out, variance = self._mean(query), np.empty(len(query.X))
        r = self.design.target(support) - self._mean(support)
        Z, new = self._random(support), self._random(query)
        for known, asked in zip(slices(support), slices(query), strict=True):
            mean, covariance = posterior(Z[known], r[known], self.G, self.s2)
            out[asked] += new[asked] @ mean
            variance[asked] = self.s2 + ((new[asked] @ covariance) * new[asked]).sum(axis=1)
        std = np.sqrt(np.maximum(variance, 1e-12))
        return self.design.to_user(out), self.design.y_scale * std

    def _mean(self, tasks: TaskSet) -> np.ndarray:
        return self.design.fixed(tasks)[:, self.kept] @ self.beta

    def _random(self, tasks: TaskSet) -> np.ndarray:
        Z = self.design.random(tasks)
        return Z if self.slopes else Z[:, :1]


def posterior(Z, r, G, s2) -> tuple[np.ndarray, np.ndarray]:
    """Return mean (q,) and covariance (q, q) of b given the residuals r of one task."""
    if not len(r):
        return np.zeros(len(G)), G
    ZG = Z @ G
    solved = np.linalg.solve(ZG @ Z.T + s2 * np.eye(len(r)), np.column_stack([r, ZG]))
    return ZG.T @ solved[:, 0], G - ZG.T @ solved[:, 1:]


class Statsmodels(MixedModel):
    """statsmodels.MixedLM: REML, full covariance."""

    package = "statsmodels.regression.mixed_linear_model"

    def estimate(self, y, F, Z, codes):
        """Fit with the package's defaults."""
        found = self.module.MixedLM(y, F, groups=codes, exog_re=Z).fit()
        return np.asarray(found.fe_params), np.asarray(found.cov_re), float(found.scale)


class StatsmodelsIntercept(Statsmodels):
    """statsmodels.MixedLM with a random intercept only."""

    slopes = False


class MixedlmRs(Statsmodels):
    """The package mixedlm-rs, which copies the interface of statsmodels."""

    package = "mixedlm_rs"


class Mixedlm(MixedModel):
    """The package mixedlm: lme4's formulas, REML, full covariance."""

    package = "mixedlm"

    def estimate(self, y, F, Z, codes):
        """Fit with the package's defaults."""
        found = self.module.lmer(_formula(F, Z), _frame(y, F, Z, codes))
        (group,) = found.VarCorr().groups.values()
        return _by_name(found.fixef(), F), np.asarray(group.cov), float(found.sigma) ** 2


class Lme4(MixedModel):
    """lme4 through Rscript, where R and the packages lme4 and jsonlite are."""

    SCRIPT = (
        "a <- commandArgs(TRUE); d <- read.csv(a[1]); d$g <- factor(d$g); "
        "m <- lme4::lmer(as.formula(a[2]), d); v <- as.matrix(lme4::VarCorr(m)[['g']]); "
        "out <- list(beta=as.list(lme4::fixef(m)), G=unname(v), s2=sigma(m)^2); "
        "cat(jsonlite::toJSON(out, digits=NA, auto_unbox=TRUE))"
    )

    def __init__(self):
        if shutil.which("Rscript") is None:
            raise ImportError("R is not installed")

    def estimate(self, y, F, Z, codes):
        """Fit with the package's defaults."""
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "rows.csv"
            _frame(y, F, Z, codes).to_csv(file, index=False)
            command = ["Rscript", "-e", self.SCRIPT, str(file), _formula(F, Z)]
            done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:  # the limit of processor time holds for R too
            last = (done.stderr.strip().splitlines() or [f"code {done.returncode}"])[-1]
            raise RuntimeError(f"R ended: {last}")
        found = json.loads(done.stdout)
        return _by_name(found["beta"], F), np.array(found["G"], ndmin=2), float(found["s2"])


class GpboostLinear(MixedModel):
    """GPBoost's linear mixed model: independent random coefficients."""

    package = "gpboost"

    def estimate(self, y, F, Z, codes):
        """Fit with the package's defaults, on one thread."""
        model = self.module.GPModel(
            group_data=codes, group_rand_coef_data=Z[:, 1:],
            ind_effect_group_rand_coef=[1] * (Z.shape[1] - 1), likelihood="gaussian",
            num_parallel_threads=1,
        )  # fmt: skip
        model.fit(y=y, X=F)
        variances = np.asarray(model.get_cov_pars()).ravel()
        return np.asarray(model.get_coef()).ravel(), np.diag(variances[1:]), float(variances[0])


def _formula(F, Z) -> str:
    fixed = " + ".join(f"f{j}" for j in range(F.shape[1]))
    random = " + ".join(f"z{j}" for j in range(Z.shape[1]))
    return f"y ~ 0 + {fixed} + (0 + {random} | g)"


def _frame(y, F, Z, codes):
    import pandas as pd

    columns = {f"f{j}": column for j, column in enumerate(F.T)}
    columns |= {f"z{j}": column for j, column in enumerate(Z.T)}
    return pd.DataFrame({"y": y, "g": codes.astype(str), **columns})


def _by_name(values, F) -> np.ndarray:
    return np.array([values[f"f{j}"] for j in range(F.shape[1])], dtype=float)

"""Small models of every kind that a model file can hold, and what a user does with each.

`tools/fuzz_model_files.py` damages their files; tests save and load them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.sparse import csr_array
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.impute import MissingIndicator, SimpleImputer
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import (
    Binarizer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    SplineTransformer,
    StandardScaler,
)

import condmeta as cm
from condmeta.feature_maps import (
    CircleMap,
    Identity,
    MeanFourier,
    MeanInput,
    MeanInputOutput,
    RandomFourier,
)
from condmeta.kernels import AbelKernel, GaussianKernel, LaplaceKernel, MeanEmbedding

T, N = 10, 5  # tasks, rows of each
RNG = np.random.default_rng(7)
TASK = np.repeat([f"t{t}" for t in range(T)], N)
X = RNG.normal(size=(T * N, 2))
Y = X @ [1.0, -0.5] + np.repeat(RNG.normal(size=T), N) + 0.1 * RNG.normal(size=T * N)
CLASS = np.where(Y + 0.5 * RNG.normal(size=T * N) > np.median(Y), "yes", "no")
HEAVY = Y + 5.0 * (np.arange(T * N) % 9 == 0)  # a few labels are wild
COUNT = np.floor(np.exp(Y - Y.mean()))
ORDER = ["low", "fair", "high"]
RATING = np.array(ORDER)[np.digitize(Y, np.quantile(Y, [0.3, 0.7]))]
NUMBERS = pd.DataFrame(
    {"size": RNG.uniform(size=T + 2), "age": RNG.uniform(size=T + 2)},
    index=[f"t{t}" for t in range(T + 2)],
)
MIXED = NUMBERS.assign(town=["Bonn", "Rome", None, "Oslo"] * 3)
MIXED.loc["t3", "age"] = np.nan
WIDE = np.random.default_rng(8).normal(size=(T * N, 70))
SPARSE = csr_array(np.where(np.abs(WIDE) > 1, WIDE, 0.0))
TIME = np.tile(np.arange(float(N)), T)
MORE_TASK = np.array(["t0", "t0", f"t{T}", f"t{T}"])


class Stored(NamedTuple):
    """A fitted model, and calls that users make: name -> function of a loaded model."""

    model: Any
    uses: dict[str, Callable[[Any], Any]]
    options: dict[str, Any] = {}

    def save(self, path) -> None:
        """Write the model with everything that a file can hold."""
        self.model.save(path, **self.options)


def _learner_uses(side, y, X=X) -> dict[str, Callable[[Any], Any]]:
    new = None if side is None else side
    row = None if side is None else side.iloc[-1].to_dict()
    last = None if side is None else side.iloc[-1:]
    more = 1.1 * X[:4]
    return {
        "predict": lambda m: m.predict(X, task=TASK),
        "predict new": lambda m: m.predict(more, task=MORE_TASK, side_info=new),
        "probabilities": lambda m: m.predict_proba(X, task=TASK),
        "std": lambda m: m.predict(X[:3], task=TASK[:3], return_std=True),
        "adapt": lambda m: m.adapt(X[:3], y[:3], side_info=row).predict(X[:3]),
        "adapt many": lambda m: m.adapt(X[:6], y[:6], task=TASK[:6], side_info=new).coef_,
        "theta": lambda m: m.theta_for(row),
        "coefficients": lambda m: m.coef_frame()["adapted"].to_numpy(),
        "map": lambda m: m.M_frame().iloc[:, -1].to_numpy(),
        "update": lambda m: m.update(more, y[:4], task=MORE_TASK, side_info=new).predict(
            more, task=MORE_TASK, side_info=new
        ),
        "partial_fit": lambda m: m.partial_fit(
            X[:5], y[:5], task=[f"t{T + 1}"] * 5, side_info=last
        ).predict(X, task=TASK),
        "card": lambda m: m.card() and None,
    }


def _timed_uses() -> dict[str, Callable[[Any], Any]]:
    plain = _learner_uses(NUMBERS, Y)
    uses = {name: plain[name] for name in ("predict", "std", "theta", "coefficients", "card")}
    call = {"task": MORE_TASK, "side_info": NUMBERS, "time": TIME[:4] + N}
    row = NUMBERS.iloc[-1].to_dict()
    return uses | {
        "later": lambda m: m.predict(X, task=TASK, time=9.0, return_std=True)[1],
        "adapt": lambda m: m.adapt(X[:3], Y[:3], side_info=row, time=TIME[:3]).predict(X[:3]),
        "update": lambda m: m.update(X[:4], Y[:4], **call).predict(X[:4], **call),
        "partial_fit": lambda m: m.partial_fit(
            X[:5], Y[:5], task=["new"] * 5, time=TIME[:5], side_info=NUMBERS.rename({"t9": "new"})
        ).predict(X[5:9], task=["new"] * 4),
    }  # fmt: skip


def _interval_uses() -> dict[str, Callable[[Any], Any]]:
    uses = _learner_uses(NUMBERS, Y)
    uses["interval"] = lambda m: np.array(m.predict_interval(X[:3], task=TASK[:3], coverage=0.5))
    return uses


def _table_uses(frame, more) -> dict[str, Callable[[Any], Any]]:
    return {
        "predict": lambda m: m.predict(frame),
        "predict new": lambda m: m.predict(more),
        "predictions": lambda m: m.predict_frame(frame).iloc[:, -1].to_numpy(),
        "interval": lambda m: m.predict_frame(frame, coverage=0.5).iloc[:, -1].to_numpy(),
        "adapt": lambda m: m.adapt_frame(more).iloc[:, -1].to_numpy(),
        "update": lambda m: m.update(more).predict(more),
        "coefficients": lambda m: m.coef_frame()["adapted"].to_numpy(),
        "card": lambda m: m.card() and None,
    }


def _learners() -> dict[str, tuple[Any, Any, Any]]:
    """Return name -> learner, side table, target."""
    sgd, ridge, kernel = (
        cm.ConditionalSGDRegressor, cm.ConditionalRidge, cm.KernelConditionalSGDRegressor,
    )  # fmt: skip
    found = {
        "sgd online": (sgd(lam=1.0, meta_step=0.1), MIXED, Y),
        "sgd batch": (sgd(lam=1.0, meta_step=0.1, inner="batch", loss="squared"), NUMBERS, Y),
        "sgd huber rows": (sgd(loss="huber", scale="rows"), None, Y),
        "sgd no tasks": (sgd(keep_tasks=False), NUMBERS, Y),
        "sgd classes": (cm.ConditionalSGDClassifier(loss="hinge"), MIXED, CLASS),
        "sgd log odds": (cm.ConditionalSGDClassifier(loss="logistic"), NUMBERS, CLASS),
        "cv": (cm.ConditionalSGDRegressorCV(random_state=0), NUMBERS, Y),
        "coin": (cm.ConditionalCoinRegressor(), NUMBERS, Y),
        "erm": (cm.ConditionalERMRegressor(lam=1.0), NUMBERS, Y),
        "ridge": (ridge(), MIXED, Y),
        "ridge per task": (ridge(noise="per_task"), NUMBERS, Y),
        "ridge on trees": (ridge(base="boosting"), MIXED, Y),
        "ridge in context": (ridge(context=True, cold_start="pooled"), NUMBERS, Y),
        "ridge of powers": (ridge(y_transform="yeo-johnson"), NUMBERS, Y),
        "ridge of points": (ridge(MeanInput(), conditioning="split"), None, Y),
        "logistic": (cm.ConditionalLogistic(), NUMBERS, CLASS),
        "logistic on trees": (cm.ConditionalLogistic(base="boosting"), NUMBERS, CLASS),
        "several classes": (cm.ConditionalLogistic(), NUMBERS, RATING),
        "counts": (cm.ConditionalCount(), NUMBERS, COUNT),
        "ordered": (cm.ConditionalOrdinal(classes=ORDER), NUMBERS, RATING),
        "kernel": (kernel(kernel=GaussianKernel(0.5)), NUMBERS, Y),
        "kernel laplace": (kernel(kernel=LaplaceKernel(0.5)), MIXED, Y),
        "kernel of sets": (kernel(kernel=MeanEmbedding("gaussian")), None, Y),
        "kernel abel": (kernel(kernel=AbelKernel(3.0)), None, Y),
        "kernel precomputed": (kernel(kernel="precomputed"), _gram(), Y),
        "independent": (cm.IndependentRegressor(lam=1.0), None, Y),
        "pooled": (cm.PooledRegressor(lam=1.0), None, Y),
        "fixed": (cm.FixedBiasRegressor(lam=1.0), None, Y),
        "independent classes": (cm.IndependentClassifier(lam=1.0), None, CLASS),
        "pooled classes": (cm.PooledClassifier(lam=1.0), None, CLASS),
        "fixed classes": (cm.FixedBiasClassifier(lam=1.0), None, CLASS),
        "auto": (cm.AutoRegressor(base=None), NUMBERS, Y),
        "auto classes": (cm.AutoClassifier(base=None), NUMBERS, CLASS),
        "x transform": (
            ridge(x_transform=Pipeline([("z", StandardScaler()), ("p", PolynomialFeatures(2))])),
            NUMBERS, Y,
        ),
        "splines": (ridge(x_transform="splines"), NUMBERS, Y),
        "points": (sgd([MeanInputOutput(), MeanFourier(3, random_state=0)]), None, Y),
        "maps": (sgd(["auto", RandomFourier(3, random_state=0)]), NUMBERS, Y),
        "circle": (sgd(CircleMap()), NUMBERS[["size"]], Y),
        "adam": (sgd(meta_step=cm.outer_steps.Adam(0.1)), NUMBERS, Y),
        "momentum": (sgd(meta_step=cm.outer_steps.Momentum(0.1)), NUMBERS, Y),
        "decay": (sgd(meta_step=cm.outer_steps.Decay(0.1)), NUMBERS, Y),
        "kernel linear": (kernel(kernel="linear"), NUMBERS, Y),
        "ridge wide": (ridge(), NUMBERS, Y),
        "ridge sparse": (ridge(), NUMBERS, Y),
        "ridge of wild rows": (ridge(noise="student"), NUMBERS, HEAVY),
        "identity": (sgd(Identity()), NUMBERS, Y),
    }  # fmt: skip
    for transformer in _transformers():
        columns = ["town"] if "Ordinal" in type(transformer).__name__ else ["size", "age"]
        table = MIXED.assign(town=MIXED["town"].fillna("none"))
        if type(transformer).__name__ in ("MissingIndicator", "SimpleImputer"):
            table = MIXED.assign(size=MIXED["age"])
        elif isinstance(transformer, ColumnTransformer):
            columns, table = ["size", "age", "town"], table.fillna({"age": 0.5})
        else:
            table = table.fillna({"age": 0.5})
        found[type(transformer).__name__] = sgd(transformer), table[columns], Y
    return found


def _transformers() -> list[Any]:
    one_hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    parts = [("numbers", StandardScaler(), ["size", "age"]), ("names", one_hot, ["town"])]
    return [
        MinMaxScaler(), RobustScaler(), MaxAbsScaler(), Normalizer(), OrdinalEncoder(),
        SplineTransformer(n_knots=3),
        KBinsDiscretizer(3, encode="onehot-dense", strategy="uniform"),
        QuantileTransformer(n_quantiles=5), PowerTransformer(), Binarizer(), SimpleImputer(),
        MissingIndicator(features="all"), PCA(2), TruncatedSVD(1, random_state=0),
        Nystroem(n_components=3, random_state=0), RBFSampler(n_components=3, random_state=0),
        ColumnTransformer(parts), FeatureUnion([("a", PCA(1)), ("b", MinMaxScaler())]),
    ]  # fmt: skip


def _gram() -> pd.DataFrame:
    points = NUMBERS.to_numpy()[:T]
    values = np.exp(-((points[:, None] - points[None]) ** 2).sum(axis=2))
    names = [f"t{t}" for t in range(T)]
    return pd.DataFrame(values, index=names, columns=names)


def names() -> list[str]:
    """Return the names of all models."""
    others = "calibrated", "calibrated plain", "table", "table classes", "shrunken", "levels"
    return [*_learners(), *others, "drift", "drift rows", "drift hedged", "formula"]


@cache
def stored(name: str) -> Stored:
    """Return a fitted model and its uses."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _make(name)


def _hedged() -> Stored:
    """Return a model that chose a drift, and has seen rows on which it paid less."""
    rng, n_times = np.random.default_rng(0), 16
    walk = np.cumsum(rng.normal(size=(n_times, T)), axis=0).ravel()
    X, task = rng.normal(size=(len(walk), 2)), np.tile(np.unique(TASK), n_times)
    time = np.repeat(np.arange(float(n_times)), T)
    model = cm.ConditionalRidge().fit(X, walk + X[:, 0], task=task, side_info=NUMBERS, time=time)
    mean = walk.reshape(n_times, T).mean(axis=0)
    model.update(X[:T], (mean + walk[-T:]) / 2 + X[:T, 0], task=task[:T], time=float(n_times))
    return Stored(model, _timed_uses())


def _calibrated(learner) -> Stored:
    model = cm.calibrate(learner, X, Y, task=TASK, side_info=NUMBERS, shots=(0, 2))
    return Stored(model, _interval_uses())


def _levels() -> Stored:
    ids, more = ([(t[-1] < "5", t) for t in tasks.tolist()] for tasks in (TASK, MORE_TASK))
    side = {(t[-1] < "5", t): [float(size)] for t, size in NUMBERS["size"].items()}
    model = cm.ConditionalLevels(metric="diagonal").fit(X, Y, task=ids, side_info=side)
    return Stored(model, {
        "predict": lambda m: m.predict(X, task=ids),
        "predict new": lambda m: m.predict(X[:4], task=more, side_info=side),
        "std": lambda m: m.predict(X[:4], task=more, side_info=side, return_std=True),
        "adapt": lambda m: m.adapt(X[:4], Y[:4], task=more, side_info=side).coef_,
        "update": lambda m: m.update(X[:4], Y[:4], task=more, side_info=side).predict(X, task=ids),
        "coefficients": lambda m: m.coef_frame()["adapted"].to_numpy(),
        "groups": lambda m: m.group_frame()["effect"].to_numpy(),
        "card": lambda m: m.card() and None,
    })  # fmt: skip


def _formula() -> Stored:
    frame = pd.DataFrame({"shop": TASK, "price": X[:, 0], "kind": ["a", "b"] * (T * N // 2)})
    frame = frame.assign(sold=Y)
    sides = NUMBERS[["size"]].rename_axis("shop").reset_index()
    more = frame.iloc[:4].assign(shop=MORE_TASK)
    formula = "sold ~ poly(price, 2) + kind | shop ~ scale(size)"
    return Stored(cm.from_formula(formula, frame, sides), {
        "predict": lambda m: m.predict(frame),
        "predict new": lambda m: m.predict(more, sides),
        "adapt": lambda m: m.adapt(more, sides).coef_,
        "update": lambda m: m.update(more, sides).predict(more),
        "coefficients": lambda m: m.coef_frame()["adapted"].to_numpy(),
        "card": lambda m: m.card() and None,
    })  # fmt: skip


def _make(name: str) -> Stored:
    if name == "formula":
        return _formula()
    if name == "calibrated":
        return _calibrated(cm.ConditionalRidge())
    if name == "calibrated plain":
        return _calibrated(cm.ConditionalSGDRegressor())
    if name == "shrunken":
        means = NUMBERS.iloc[:T]
        model = cm.shrink(means + 0.1, std_errors=0.1 + 0.1 * means, side_info=NUMBERS[["age"]])
        uses = _learner_uses(NUMBERS[["age"]], Y)
        return Stored(
            model, {call: uses[call] for call in ("theta", "coefficients", "map", "card")}
        )
    if name == "drift hedged":
        return _hedged()
    if name.startswith("drift"):
        model = cm.ConditionalRidge(drift=("ar", 0.9, 0.5) if name == "drift" else 0.8)
        fit = model.fit if name == "drift" else model.partial_fit  # which keeps the rows
        return Stored(fit(X, Y, task=TASK, side_info=NUMBERS, time=TIME), _timed_uses())
    if name == "levels":
        return _levels()
    if name.startswith("table"):
        side = MIXED.loc[TASK].reset_index(drop=True)
        frame = pd.DataFrame({"shop": TASK, "price": X[:, 0], "kind": ["a", "b"] * (T * N // 2)})
        days = pd.date_range("2024-01-01", periods=T * N).strftime("%Y-%m-%d")
        frame = frame.assign(day=days, share=[f"{n}%" for n in range(T * N)])
        frame = frame.assign(sold=CLASS if "classes" in name else Y, **{c: side[c] for c in side})
        more = frame.iloc[:4].assign(shop=MORE_TASK)
        model = cm.TableModel(task="shop", target="sold", side=["size", "age", "town"])
        return Stored(model.fit(frame), _table_uses(frame, more))
    learner, side, y = _learners()[name]
    rows = {"ridge wide": WIDE, "ridge sparse": SPARSE}.get(name, X)
    model = learner.fit(rows, y, task=TASK, side_info=None if side is None else side.iloc[:T])
    options = {"include_points": True} if name in ("kernel of sets", "kernel abel") else {}
    return Stored(model, _learner_uses(side, y, rows), options)

"""Model files of the first format, which held the parts of a learner instead of one `Fitted`."""

from __future__ import annotations

from typing import Any

from condmeta.fitted.columns import Columns
from condmeta.fitted.fitted import Fitted
from condmeta.fitted.predictor import LinearPredictor
from condmeta.fitted.seen_ids import SeenIds
from condmeta.fitted.side_reader import SideReader
from condmeta.fitted.tau import KernelTau, LinearTau
from condmeta.inner.algorithms import Batch, get_inner
from condmeta.inner.coin import Coin
from condmeta.inner.no_adaptation import NoAdaptation
from condmeta.inner.posterior import Gaussian, lower_root
from condmeta.inner.row_posterior import Bernoulli
from condmeta.kernels import LinearKernel, get_kernel
from condmeta.losses import get_loss
from condmeta.meta.kernel_sgd import task_weights

COMMON = (
    "n_features_in_",
    "feature_names_in_",
    "n_tasks_",
    "side_features_",
    "y_offset_",
    "classes_",
)


def fitted_of_parts(learner: Any, parts: dict) -> Fitted:
    """Return the value of a learner with the parts that its file holds."""
    public, fmap = parts["public"], parts["map"]
    names = public.get("feature_names_in_")
    names = None if names is None else tuple(names)
    inner = _inner(learner, public, parts)
    kernel = None
    if "kernel" in learner.get_params(deep=False):
        kernel = get_kernel(learner.kernel) if len(fmap.names_out_) else LinearKernel()
    predictor = LinearPredictor(
        type(learner).__name__, parts["preparation"], inner, public.get("classes_"), parts["base"],
        names, getattr(inner, "resumable", False) and not fmap.reads_points, learner._weighs,
    )  # fmt: skip
    columns = Columns(public["n_features_in_"], names, parts["task_name"], parts["backend"])
    return Fitted(
        predictor,
        SideReader(fmap, learner.missing_side, kernel),
        _tau(learner, parts, kernel),
        parts["store"],
        columns,
        public["n_tasks_"],
        learner.conditioning,
        {name: value for name, value in public.items() if name not in COMMON},
        parts.get("state"),
        None if parts["seen"] is None else SeenIds(parts["seen"]),
    )


def _tau(learner: Any, parts: dict, kernel: Any) -> LinearTau | KernelTau:
    if kernel is None:
        return LinearTau(parts["weights"], parts["phi_mean"])
    sides, weights, gradients = parts["sides"], parts["weights"], parts["gradients"]
    if gradients is not None:
        c = task_weights(len(sides), float(learner.meta_step), learner.averaging)
        weights = c[:, None] * gradients
    return KernelTau(kernel, sides, weights, gradients, parts["theta_mean"])


def _inner(learner: Any, public: dict, parts: dict) -> Any:
    """Return the inner algorithm, which the first format left to be made from the settings."""
    kind, lam = type(learner).__name__, public.get("lam_", getattr(learner, "lam", None))
    if kind == "ConditionalRidge":
        root = lower_root(public["H_"])
        return Gaussian(root, public["s2_"], public["noise_"] == "per_task")
    if kind == "ConditionalLogistic":
        return Bernoulli(lower_root(public["H_"]))
    if kind == "ConditionalCoinRegressor":
        return Coin(parts["state"].radius, parts["state"].stake)
    if kind == "ConditionalERMRegressor":
        return Batch(lam, learner.loss, learner.tol)
    if kind.startswith("Pooled"):
        return NoAdaptation(get_loss(learner.loss))
    return get_inner(learner.inner, lam, learner.loss, learner.tol)

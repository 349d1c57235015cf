"""From the options of `condmeta fit` to the learner and the model that they name."""

import condmeta
from condmeta.errors import DataError

# For numbers, for classes. Class names, not classes: `--help` must not load them.
LEARNERS = {
    "ridge": ("ConditionalRidge", None),
    "levels": ("ConditionalLevels", None),
    "logistic": (None, "ConditionalLogistic"),
    "count": ("ConditionalCount", None),
    "ordinal": (None, "ConditionalOrdinal"),
    "auto": ("AutoRegressor", "AutoClassifier"),
    "erm": ("ConditionalERMRegressor", None),
    "coin": ("ConditionalCoinRegressor", None),
    "sgd": ("ConditionalSGDRegressor", "ConditionalSGDClassifier"),
    "independent": ("IndependentRegressor", "IndependentClassifier"),
    "pooled": ("PooledRegressor", "PooledClassifier"),
}
KINDS = {  # what learners for one kind of target read
    "ridge": "number", "levels": "number", "erm": "number", "coin": "number",
    "logistic": "class", "count": "count", "ordinal": "ordered",
}  # fmt: skip

DEFAULTS = {"number": "ridge", "count": "count", "class": "logistic", "ordered": "ordinal"}
HOLDS = {"number": "numbers", "count": "counts", "class": "classes", "ordered": "ordered classes"}

SETTINGS = {  # options that set parameters of the learner: their values, and who has them
    "boosting": (lambda on: {"base": "boosting" if on else None},
                 "ridge, levels, logistic and auto"),
    "random": (lambda names: {"random": "intercept" if names == ["intercept"] else names},
               "ridge, levels, logistic, ordinal and count"),
    "shared_start": (lambda on: {"feature_map": None}, "learners that read side information"),
    "linear": (lambda on: {"x_transform": None, "y_transform": None},
               "ridge, levels and count"),
}  # fmt: skip
FLAGS = "shared_start", "linear"  # settings that are there or not


def names_a_learner(params) -> bool:
    """Return whether options name a learner or its settings; else TableModel chooses it."""
    return any(params[name] is not None for name in ("learner", *SETTINGS))


def kind_of_learner(params) -> str | None:
    """Return what the target of the named learner holds; None if this is open."""
    return KINDS.get(params["learner"])


def learner_of(params, target: str):
    """Return the learner that the options name, for what the target holds."""
    name = params["learner"] or DEFAULTS[target]
    kind = LEARNERS[name][target in ("class", "ordered")]
    if kind is None:  # only in parts: elsewhere the learner decides how the target is read
        raise DataError(
            f"--learner {name} predicts two classes, and --chunks needs a numeric target: leave "
            "one of them out."
        )
    learner = getattr(condmeta, kind)()
    if params["classes"] is not None:
        learner.set_params(classes=params["classes"])
    for option, (values_of, who) in SETTINGS.items():
        if params[option] is None:
            continue
        known = learner.get_params().keys()
        values = {key: value for key, value in values_of(params[option]).items() if key in known}
        if not values:
            flag = option.replace("_", "-")
            chosen = f", which is for a target of {HOLDS[target]}: add --learner, such as ridge"
            why = "" if params["learner"] else chosen
            raise DataError(f"--{flag} works with {who}, not with {name}{why}.")
        learner.set_params(**values)
    return learner.set_params(order=_order(params)) if name == "auto" else learner


def model_of(columns, learner, params):
    """Return an unfitted model that reads the columns of the options."""
    settings = {name: params[name] for name in ("missing", "missing_side", "intervals")}
    return condmeta.TableModel(
        learner, task=columns.task, target=columns.target, features=columns.features,
        exclude=columns.excluded, side=columns.side, side_key=columns.side_key,
        order=_order(params), text=columns.text, dates=columns.dates, holidays=columns.holidays,
        decimal=columns.decimal, time=columns.time, exposure=columns.exposure,
        trials=columns.trials, weight=columns.weight, side_decimal=columns.side_decimal, **settings,
    )  # fmt: skip


def _order(params) -> str:
    """Return which rows of a held-out task are shown: the first ones of a sorted table."""
    return "random" if params["sort_by"] is None and params["time"] is None else "first"

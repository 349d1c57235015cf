"""What a learner stores in a model file, and how it comes back."""

from __future__ import annotations

import copy

from condmeta import feature_maps, kernels, persistence
from condmeta.engine import active_engine, instruction_set
from condmeta.errors import ModelFileError
from condmeta.estimators.base_model import Base
from condmeta.estimators.boosted import BoostedTrees
from condmeta.estimators.collected import Collected
from condmeta.estimators.kernel_sides import GramReader, SetReader
from condmeta.estimators.preparation import Preparation
from condmeta.estimators.task_store import TaskStore
from condmeta.inner.bernoulli import Covariances
from condmeta.inner.coin import CoinTasks
from condmeta.inner.keep import Counted
from condmeta.inner.online import OnlineState
from condmeta.inner.scatter import Scatter
from condmeta.inner.squared import SquaredState
from condmeta.losses import LogisticLoss, Loss
from condmeta.meta.coin import CoinState
from condmeta.meta.sgd import SGDState
from condmeta.tasks import TaskTable
from condmeta.tasks.encode import TableEncoder
from condmeta.tasks.seen import SeenColumns

STATES = {
    "online": OnlineState, "squared": SquaredState, "counted": Counted, "coin": CoinTasks,
    "covariances": Covariances,
}  # fmt: skip


def save_learner(learner, path, **held: bool) -> None:
    """Write what `slim(**held)` leaves of a learner to a model file (see `Serving.save`)."""
    slim = learner.slim(**held)
    persistence.write_model(path, slim, card=slim.card())


def slimmed(learner, tasks: bool, resume: bool):
    """Return a copy without what a file of this kind does not hold."""
    slim = copy.copy(learner)
    if not tasks:
        slim._store, slim._seen = None, set()
    elif slim._store is not None and not resume:
        slim._store = slim._store.without_state()
    if isinstance(slim.__dict__.get("_state"), Collected) and not (tasks and resume):
        slim._state = None  # statistics of every task
    return slim


def slimmed_auto(auto, tasks: bool, resume: bool):
    """Return a copy of an Auto learner whose learners are slim."""
    slim, parts = copy.copy(auto), auto._learners.items()
    slim._learners = {name: learner.slim(tasks, resume) for name, learner in parts}
    return slim


def card_of_auto(auto) -> dict:
    """Return the card of the first learner that an Auto learner uses, with its own settings."""
    about = next(iter(auto._learners.values())).card()
    about["settings"] = {name: repr(v) for name, v in auto.get_params(deep=False).items()}
    return about | {"report": auto.report_}


def export_auto(auto) -> dict:
    """Return the parts of an Auto learner."""
    public = {
        name: value
        for name, value in vars(auto).items()
        if name.endswith("_") and not name.startswith("_")
    }
    return {"params": auto.get_params(deep=False), "public": public, "learners": auto._learners}


def restore_auto(cls, state: dict):
    """Build an Auto learner from its parts."""
    try:
        auto = cls(**state["params"])
        auto.__dict__.update(state["public"])
        auto._learners = dict(state["learners"])
        used = [auto.candidates_.index(name) for name in auto._learners]
        auto._used = auto.weights_[:, used]
    except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
        raise ModelFileError(
            f"The parts of the stored {cls.__name__} do not fit: {error}"
        ) from None
    return auto


def card(learner) -> dict:
    """Return what a reader of the file wants to know before opening it."""
    store = learner._store
    names = getattr(learner, "feature_names_in_", None)
    return {
        "engine": active_engine(),
        "instruction_set": instruction_set(),
        "sizes": {
            "training_tasks": learner.n_tasks_,
            "kept_tasks": 0 if store is None else len(store.ids),
            "features": learner.n_features_in_,
            "side_features": len(learner.side_features_),
        },
        "resumable": learner._head.resumable and store is not None and store.state is not None,
        "schema": {
            "features": None if names is None else list(names),
            "task": learner._task_name,
            "side_columns": learner._map.columns_,
            "classes": [str(label) for label in getattr(learner, "classes_", [])],
        },
        "settings": {name: repr(value) for name, value in learner.get_params(deep=False).items()},
    }


def export_learner(learner) -> dict:
    """Return the parts of a learner; scales and map as objects, the rest as arrays."""
    public = {
        name: value
        for name, value in vars(learner).items()
        if name.endswith("_") and not name.startswith("_")
    }
    seen = learner.__dict__.get("_seen")
    return {
        "params": learner.get_params(deep=False),
        "public": public,
        "backend": learner._backend,
        "task_name": learner._task_name,
        "preparation": learner._head.preparation,
        "map": learner._map,
        **learner._export_tau(),
        "seen": None if seen is None else sorted(seen, key=repr),
        "store": learner._store,
        "base": _storable(learner.__dict__.get("_base")),
    }


def _storable(base: Base | None) -> Base | None:
    if base is not None and not isinstance(base.model, BoostedTrees):
        raise ModelFileError(
            f"A model file cannot hold the base {type(base.model).__name__}: use base='boosting', "
            "or run the base yourself and pass what it says as offset= (of two classes its log "
            "odds, as a column of X); or pickle the learner, and open such files only where you "
            "trust them."
        )
    return base


def restore_learner(cls, state: dict):
    """Build a learner from its parts."""
    try:
        learner = cls(**state["params"])
        learner.__dict__.update(state["public"])
        learner._backend, learner._task_name = state["backend"], state["task_name"]
        learner._map, learner._store = state["map"], state["store"]
        if state["base"] is not None:
            learner._base = state["base"]
        if state["seen"] is not None:
            learner._seen = set(state["seen"])
        width = _check_shapes(learner, state["preparation"])
        learner._restore_tau(state, width)
        learner._inner = learner._restore_inner()
        names = learner.__dict__.get("feature_names_in_")
        learner._head = learner._make_head(
            state["preparation"], None if names is None else tuple(names)
        )
    except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
        raise ModelFileError(
            f"The parts of the stored {cls.__name__} do not fit: {error}"
        ) from None
    return learner


def _check_shapes(learner, preparation) -> int:
    """Return the number of coordinates of a weight vector, which task models must have."""
    store, d = learner._store, len(preparation.x_mean)
    width = d + bool(preparation.fit_intercept)
    fits = preparation.x_mean.shape == (d,) == preparation.x_scale.shape
    fits = fits and preparation.n_inputs == learner.n_features_in_
    base = learner.__dict__.get("_base")
    added = base is not None and base.classes  # its log odds are an input
    fits = fits and (preparation.transformer is not None or preparation.n_inputs + added == d)
    if store is not None:
        fits = fits and store.theta.shape == (len(store.ids), width) == store.coef.shape
        fits = fits and (store.Phi is None or len(store.Phi) == len(store.ids))
    if not fits:
        raise ValueError(f"arrays that do not have {learner.n_features_in_} features")
    return width


def export_store(store: TaskStore) -> dict:
    """Return the arrays of a store, its states as dicts with their kind."""
    parts = {name: value for name, value in vars(store).items() if name not in TaskStore.CACHED}
    for name in ("state", "own_state"):
        state = parts[name]
        if state is not None:
            kind = next(kind for kind, cls in STATES.items() if type(state) is cls)
            parts[name] = {"kind": kind, **state._asdict()}
    return parts


def restore_store(cls, parts: dict) -> TaskStore:
    """Build a store from its arrays."""
    for name in ("state", "own_state"):
        if parts.get(name) is not None:
            fields = dict(parts[name])
            parts[name] = STATES[fields.pop("kind")](**fields)
    return cls(**parts)


def register_learner(cls) -> None:
    """Let model files hold a learner."""
    persistence.register(cls, export=export_learner, restore=restore_learner)


def export_table(table: TaskTable) -> dict:
    """Return the ids and columns of a side table."""
    return {"ids": table.ids, "data": table.data, "backend": table.backend}


def restore_table(cls, parts: dict) -> TaskTable:
    """Build a side table from its columns, which were typed and checked before."""
    return cls._make(parts["ids"], parts["data"], parts["backend"])


persistence.register(TaskTable, export=export_table, restore=restore_table)
for part in (Base, Collected, Scatter, SGDState, CoinState):
    persistence.register(part, export=part._asdict, restore=lambda cls, parts: cls(**parts))
persistence.register(TaskStore, export=export_store, restore=restore_store)
persistence.register(BoostedTrees)
for part in (Preparation, TableEncoder, SeenColumns, Loss, LogisticLoss, feature_maps.ComposedMap):
    persistence.register(part)
for part in (GramReader, SetReader, kernels.GramRows, kernels.PointSets, kernels.PrecomputedKernel):
    persistence.register(part)
for part in (kernels.LinearKernel, kernels.GaussianKernel, kernels.LaplaceKernel):
    persistence.register(part)
for part in (kernels.AbelKernel, kernels.MeanEmbedding):
    persistence.register(part)
for name in feature_maps.__all__:
    if name != "ComposedMap":
        persistence.register(getattr(feature_maps, name))

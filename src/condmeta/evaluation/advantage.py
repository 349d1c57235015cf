"""Does side information pay? How much it explains, which of it, and what it gains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from condmeta.errors import DataError
from condmeta.estimators import ConditionalRidge
from condmeta.estimators.preparation import SCALES, Preparation
from condmeta.evaluation.gains import Gain, gains, gains_in_words
from condmeta.feature_maps import ComposedMap
from condmeta.feature_maps.raw_columns import raw_columns
from condmeta.inner.squared import SquaredState
from condmeta.tasks import TaskSet
from condmeta.tasks.frames import make_frame
from condmeta.tasks.held_out import as_tasks, check_shots
from condmeta.tasks.splits import make_generator
from condmeta.theory.linear_gap import Interval, LinearGap, affordable, draw_blocks, linear_gap


@dataclass(frozen=True, repr=False)
class Advantage:
    """Hold what side information is worth; printed it is a sentence.

    Attributes
    ----------
    gap : Interval
        V(w_rho)^2 - min V(tau)^2 over the linear functions of Phi, in the learner's units.
    share : Interval
        The gap over V(w_rho)^2, the variance of task coefficients.
    predicted : Interval
        E (<x, tau(s) - w_rho>)^2, in squared units of y, whatever the units of X.
    columns : dict of name -> (Interval, Interval)
        Of each raw side column the gap that it gives alone, and the gap that is lost without it.
    coefficients : dict of name -> (float, float)
        Of each coefficient the variance that is explained, and what is left.
    gains : list of Gain
        Mean absolute errors on held-out tasks without and with side information.
    coverage : float
        Of the intervals.
    n_tasks, n_directions, n_columns : int
        Tasks with points; and how many principal directions of the columns of Phi were used.

    Examples
    --------
    >>> import condmeta as cm
    >>> tasks = cm.environments.Circle(d=3, n=6).sample(60, random_state=0)
    >>> units = {"scale": "none", "fit_intercept": False}
    >>> found = cm.advantage(tasks, feature_map=cm.feature_maps.CircleMap(), shots=(), **units)
    >>> found.pays, found.gap.low < 64 < found.gap.high
    (True, True)
    """

    gap: Interval
    share: Interval
    predicted: Interval
    columns: dict[str, tuple[Interval, Interval]]
    coefficients: dict[str, tuple[float, float]]
    gains: list[Gain]
    coverage: float
    n_tasks: int
    n_directions: int
    n_columns: int
    backend: str | None = None

    @property
    def pays(self) -> bool:
        """Whether the interval of the gap lies above 0."""
        return not self.gap.holds_zero

    @property
    def sentence(self) -> str:
        """The findings in plain words."""
        share, low, high = (f"{100 * value:.0f}" for value in self.share)
        gained = gains_in_words(self.gains)
        explains = f"{share} % [{low}, {high}] of the variance of task coefficients"
        if self.pays:
            text = f"Side information explains {explains}"
        elif any(gain.is_clear for gain in self.gains):
            text = f"What side information explains cannot be told from nothing, {explains}, yet it"
            return f"{text} helps: {gained}."
        else:
            text = (
                f"Side information does not pay: it explains {explains}, "
                "which cannot be told from nothing"
            )
        return f"{text}; {gained}." if gained else f"{text}."

    @property
    def column_shares(self) -> dict[str, tuple[Interval, Interval]]:
        """`columns` as shares of the variance of task coefficients, as `share` is."""
        explained, left = np.reshape(list(self.coefficients.values()), (-1, 2)).sum(axis=0)
        total = max(max(explained, 0.0) + left, abs(explained), 1e-300)
        return {
            name: tuple(Interval(*(value / total for value in part)) for part in pair)
            for name, pair in self.columns.items()
        }

    def frame(self, of: str = "gains"):
        """Return a table: of "gains", "columns" or "coefficients"."""
        if of == "gains":
            fields = [(name, [getattr(one, name) for one in self.gains]) for name in Gain._fields]
        elif of == "columns":
            fields = [("column", list(self.columns))]
            for i, name in enumerate(("alone", "unique")):
                for field in Interval._fields:
                    values = [getattr(pair[i], field) for pair in self.columns.values()]
                    fields.append((name if field == "value" else f"{name}_{field}", values))
        elif of == "coefficients":
            explained, left = np.reshape(list(self.coefficients.values()), (-1, 2)).T
            total = np.maximum(explained + left, 1e-300)
            fields = [("coefficient", list(self.coefficients)), ("explained", explained)]
            fields += [("left", left), ("share", explained / total)]
        else:
            raise DataError(
                f"frame knows 'gains', 'columns' and 'coefficients'. Got {of!r} instead."
            )
        return make_frame({name: np.asarray(values) for name, values in fields}, self.backend)

    def __repr__(self) -> str:
        return self.sentence


def advantage(
    X: Any,
    y: Any = None,
    *,
    task: Any = None,
    side_info: Any = None,
    side_key: Any = None,
    feature_map: Any = "auto",
    scale: str = "standard",
    fit_intercept: bool = True,
    coverage: float = 0.9,
    shots: Any = (0, 1, 2, 5, 10),
    n_splits: int = 5,
    order: str = "random",
    random_state: Any = 0,
) -> Advantage:
    r"""Tell how much side information can help, and how much it does.

    **What it can explain.** With w_t the weights of task t and tau(s) = M Phi(s) + b, the gap

        V(w_rho)^2 - min V(tau)^2 = E ||M (Phi - nu)||^2

    is the variance of task weights that Phi explains linearly. It is estimated though no
    task shows its weights, and without the surplus that fitting M brings: every block of tasks has
    its part in the fit of M multiplied by the fit of the others. The interval is a jackknife over
    20 blocks.

    **What it gains.** `ConditionalRidge` without and with side information is fitted on folds of
    tasks and judged on the others, adapted on some of their points.

    Parameters
    ----------
    X, y, task, side_info, side_key
        As for `fit`, or a `TaskSet` alone. Tasks without a side row are left out.
    feature_map : "auto", a map, a transformer, or a list of them
        Phi. Maps of points must not read y: what they find would hold the noise of the labels.
    scale, fit_intercept
        Units of the weights, as for `ConditionalRidge`.
    coverage : float in (0, 1)
        Of the intervals.
    shots : sequence of int
        Numbers of points to judge the gain at; empty leaves it out, which is much quicker.
    n_splits : int
        Folds of tasks.
    order : "random" or "first"
        Which points of a held-out task are adapted on.
    random_state : int, Generator, RandomState or None

    Returns
    -------
    Advantage

    Notes
    -----
    With many columns the leading principal directions of the standardised Phi stand for them: at
    most a quarter as many as there are tasks, and a third as many as there are points for each
    coefficient. The gap is then what these explain, which is not more than that of all.
    `share` rests on a diagonal covariance of what is left; `gap` does not.

    Examples
    --------
    >>> import numpy as np, condmeta as cm
    >>> rng = np.random.default_rng(0)
    >>> size, luck = rng.normal(size=(2, 80))
    >>> X = rng.normal(size=(80, 6, 1))
    >>> y = (2 * size[:, None] + 0.5 * rng.normal(size=(80, 6))) * X[:, :, 0]
    >>> found = cm.advantage(
    ...     X.reshape(-1, 1), y.ravel(), task=np.repeat(np.arange(80), 6), shots=(0,),
    ...     side_info=cm.TaskTable({"size": size, "luck": luck}, ids=range(80)),
    ... )
    >>> found.pays, found.columns["size"][0].low > found.columns["luck"][0].high
    (True, True)
    """
    tasks = _checked(as_tasks(X, y, task, side_info, side_key), scale, coverage)
    shots, rng = check_shots(shots), make_generator(random_state)
    preparation = Preparation.learn(tasks.X, tasks.y, scale, fit_intercept, np.mean)
    Phi, sources = _features(tasks, preparation, feature_map)
    rows = preparation.rows(tasks.X), preparation.target(tasks.y), tasks.offsets
    stats = SquaredState.of(*rows)
    names = list(dict.fromkeys(sources))
    groups = [np.flatnonzero([source == name for source in sources]) for name in names]
    directions = affordable(stats, Phi.shape[1])
    with threadpool_limits(1):  # the matrices are small: threads of BLAS would only wait
        found = linear_gap(stats, Phi, groups, draw_blocks(len(tasks), rng), directions)
    judged: list[Gain] = []
    if shots:
        options = {"scale": scale, "fit_intercept": fit_intercept}
        pair = ConditionalRidge(None, **options), ConditionalRidge(feature_map, **options)
        judged = gains(pair, tasks, shots, n_splits, order, rng)
    features = tasks.feature_names or tuple(f"x{j}" for j in range(tasks.n_features))
    features += ("intercept",) * bool(fit_intercept)
    gap = found.interval(lambda part: part.gap, coverage)
    return Advantage(
        gap,
        _agreeing(found.interval(lambda part: part.share, coverage), gap),
        found.interval(lambda part: part.predicted, coverage),
        _columns(found, names, coverage),
        dict(zip(features, zip(found.whole.explained, found.whole.left, strict=True), strict=True)),
        judged,
        coverage,
        len(tasks),
        directions,
        Phi.shape[1],
        tasks.backend,
    )


def _checked(tasks: TaskSet, scale: str, coverage: float) -> TaskSet:
    """Return the tasks that have points, and a side row if any has; or say what is missing."""
    if tasks.y is None:
        raise DataError("advantage reads the targets of the tasks: there are none.")
    if tasks.weight is not None:
        raise DataError("advantage reads tasks without weights: leave them out, or repeat rows.")
    if scale not in SCALES:
        listed = ", ".join(map(repr, SCALES))
        raise DataError(f"The 'scale' parameter must be one of {listed}. Got {scale!r} instead.")
    if not (isinstance(coverage, float | np.floating) and 0 < coverage < 1):
        raise DataError(
            f"The 'coverage' parameter must be a float in (0, 1). Got {coverage!r} instead."
        )
    usable = tasks.sizes > 0
    if tasks.side is not None:
        usable &= tasks.side.has(tasks.ids)
    return tasks.subset(np.flatnonzero(usable))


def _features(tasks: TaskSet, preparation: Preparation, feature_map) -> tuple[np.ndarray, list]:
    """Return Phi (T, k), and the raw column that each feature comes from."""
    fmap = ComposedMap(feature_map)
    if fmap.needs_y:
        raise DataError(
            "advantage cannot judge a feature map that reads y, as what it explains would hold the "
            "noise of the labels: give a map of X alone, as MeanInput, or of a side table."
        )
    X, y = preparation.scaled(tasks.X), preparation.target(tasks.y)
    scaled = TaskSet(X, y, tasks.offsets, tasks.ids, feature_names=tasks.feature_names)
    table = None if tasks.side is None else tasks.side.take(tasks.ids)
    fmap.fit(table if fmap.reads_table else None, scaled)
    table = table if fmap.reads_table else None
    Phi = fmap.transform(len(tasks), table=table, points=scaled)
    if not Phi.shape[1]:
        raise DataError("There is no side information to judge: pass side_info=, or a map of X.")
    return Phi, raw_columns(fmap)


def _agreeing(share: Interval, gap: Interval) -> Interval:
    """Return the interval of the share, which holds 0 if and only if that of the gap does."""
    return share._replace(low=min(share.low, 0.0) if gap.holds_zero else max(share.low, 0.0))


def _columns(found: LinearGap, names: list[str], coverage: float) -> dict:
    def of(kind: str, j: int) -> Interval:
        return found.interval(lambda part: getattr(part, kind)[j], coverage)

    return {name: (of("alone", j), of("unique", j)) for j, name in enumerate(names)}

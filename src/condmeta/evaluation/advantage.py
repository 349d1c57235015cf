"""How much side information explains, column by column, and how much it lowers the error."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from condmeta.blas_threads import limit_threads
from condmeta.errors import DataError
from condmeta.evaluation.gains import Gain, gains, gains_in_words
from condmeta.evaluation.linear_gap import BLOCKS, Interval, affordable, linear_gap
from condmeta.feature_maps import ComposedMap
from condmeta.feature_maps.raw_columns import raw_columns
from condmeta.fitted.scales import SCALES, Scales
from condmeta.inner.squared import SquaredState
from condmeta.learners.checks import warn_far_values
from condmeta.learners.ridge import ConditionalRidge
from condmeta.meta.conformal import check_coverage
from condmeta.notebook import html_block, html_table, paragraph
from condmeta.tasks import TaskSet
from condmeta.tasks.call_input import as_tasks, require_data
from condmeta.tasks.frames import make_frame
from condmeta.tasks.splits import check_shots, make_generator
from condmeta.tasks.taskset import require_numbers
from condmeta.typing import (
    FeatureMapLike,
    Frame,
    Ids,
    Matrix,
    Names,
    Order,
    RandomState,
    Scale,
    Shots,
    SideInfo,
    Values,
)


@dataclass(frozen=True, repr=False)
class Advantage:
    """What side information explains and gains; it prints as a sentence.

    Attributes
    ----------
    gap : Interval
        V(w_rho)^2 - min V(tau)^2, the minimum over linear functions tau of Phi, in the learner's
        units.
    share : Interval
        The gap over V(w_rho)^2, the variance of task coefficients.
    predicted : Interval
        E (<x, tau(s) - w_rho>)^2, in squared units of y, whatever the units of X.
    columns : dict of name -> (Interval, Interval)
        For each raw side column: the gap that it gives alone, and the gap lost without it.
    coefficients : dict of name -> (float, float)
        For each coefficient: the explained variance and the remaining variance.
    gains : list of Gain
        Mean absolute errors on held-out tasks without and with side information.
    coverage : float
        Coverage of the intervals.
    n_tasks, n_directions, n_columns : int
        Tasks with points; principal directions of Phi that were used; columns of Phi.

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
        gained = gains_in_words(self.gains)
        explains = f"explains {in_percent(self.share)} of the variance of task coefficients"
        unclear = "which is not clearly more than 0"
        if self.pays:
            text = f"Side information {explains}"
        elif any(gain.helps for gain in self.gains):
            return f"Side information {explains}, {unclear}, but it helps: {gained}."
        else:
            text = f"Side information does not pay: it {explains}, {unclear}"
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

    @property
    def frame(self) -> Frame:
        """A row for each number of points: errors without and with side information, the gain."""
        columns = {name: [getattr(one, name) for one in self.gains] for name in Gain._fields}
        return self._table(columns)

    @property
    def columns_frame(self) -> Frame:
        """A row for each side column: the gap that it gives alone, and the gap lost without it."""
        columns = {"column": list(self.columns)}
        for i, name in enumerate(("alone", "unique")):
            for field in Interval._fields:
                values = [getattr(pair[i], field) for pair in self.columns.values()]
                columns[name if field == "value" else f"{name}_{field}"] = values
        return self._table(columns)

    @property
    def coefficients_frame(self) -> Frame:
        """A row for each coefficient: explained and remaining variance, and the explained share."""
        explained, left = np.reshape(list(self.coefficients.values()), (-1, 2)).T
        columns = {"coefficient": list(self.coefficients), "explained": explained, "left": left}
        columns["share"] = explained / np.maximum(explained + left, 1e-300)
        return self._table(columns)

    def _table(self, columns: dict[str, Any]):
        return make_frame({name: np.asarray(part) for name, part in columns.items()}, self.backend)

    def __repr__(self) -> str:
        return self.sentence

    def _repr_html_(self) -> str:
        parts = [paragraph(self.sentence)]
        if self.gains:
            header = ["points", "error without", "with side information", "gain"]
            rows = [
                [one.n_support, one.without, one.with_side, _percent(one.gain, one.gain_error)]
                for one in self.gains
            ]
            parts.append(html_table(header, rows, "Mean absolute error on new tasks"))
        if self.columns:
            header = ["side column", "explains alone", "lost without it"]
            rows = [[name, *map(in_percent, pair)] for name, pair in self.column_shares.items()]
            caption = f"Share of the variance of task coefficients, {100 * self.coverage:.0f} %"
            parts.append(html_table(header, rows, f"{caption} intervals"))
        return html_block(*parts)


def advantage(
    X: Matrix, y: Values = None, *, task: Ids = None, side_info: SideInfo = None,
    side_key: Names = None,
    feature_map: FeatureMapLike = "auto", scale: Scale = "standard", fit_intercept: bool = True,
    coverage: float = 0.9, shots: Shots = (0, 1, 2, 5, 10), n_splits: int = 5,
    order: Order = "random", random_state: RandomState = 0,
) -> Advantage:  # fmt: skip
    r"""Estimate how much side information can explain, and how much it lowers the error.

    **What it can explain.** With w_t the weights of task t and tau(s) = M Phi(s) + b, the gap

        V(w_rho)^2 - min V(tau)^2 = E ||M (Phi - nu)||^2

    is the variance of task weights that Phi explains linearly. The weights are unknown, so the gap
    is estimated from the points. To avoid the bias of squaring a fitted M, the contribution of each
    block of tasks to the fit is multiplied by the fit to the other blocks. The interval is a
    jackknife over 20 blocks.

    **What it gains.** `ConditionalRidge` without and with side information is fitted to all but one
    fold of tasks, adapted to some points of the tasks in that fold, and judged on their other
    points.

    Parameters
    ----------
    X, y, task, side_info, side_key
        As for `fit`, or a `TaskSet` alone. Tasks without a side row are left out.
    feature_map : "auto", a map, a transformer, or a list of them
        Phi. It must not read y: the noise of the labels would count as explained.
    scale, fit_intercept
        Units of the weights, as for `ConditionalRidge`.
    coverage : float in (0, 1)
        Coverage of the intervals.
    shots : sequence of int
        Numbers of points to judge the gain at. Empty: no gains, which is much quicker.
    n_splits : int
        Folds of tasks.
    order : "random" or "first"
        Which points of a held-out task the learner adapts to.
    random_state : int, Generator, RandomState or None

    Notes
    -----
    Many columns are replaced by the leading principal directions of the standardised Phi: at most
    a quarter of the number of tasks, and a third of the number of points per coefficient. The gap
    is then that of these directions, at most that of all columns. `share` assumes a diagonal
    covariance of the residual task weights; `gap` does not.

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
    require_data(X, y, "advantage")
    tasks = _checked(as_tasks(X, y, task, side_info, side_key), scale, coverage)
    shots, rng = check_shots(shots), make_generator(random_state)
    scales = Scales.learn(tasks.X, tasks.y, scale, fit_intercept, np.mean)
    Phi, sources = _features(tasks, scales, feature_map)
    directions = affordable(len(tasks), len(tasks.y), scales.width, Phi.shape[1])
    stats = SquaredState.of(scales.rows(tasks.X), scales.target(tasks.y), tasks.offsets)
    names = list(dict.fromkeys(sources))
    groups = [np.flatnonzero([source == name for source in sources]) for name in names]
    with limit_threads(1):  # the matrices are small: threads of BLAS would only wait
        block = rng.permutation(len(tasks)) % min(BLOCKS, len(tasks))
        found = linear_gap(stats, Phi, groups, block, directions)
    judged: list[Gain] = []
    if shots:
        options = {"scale": scale, "fit_intercept": fit_intercept}
        options |= {"x_transform": None, "y_transform": None}  # the gap is that of linear models
        pair = ConditionalRidge(None, **options), ConditionalRidge(feature_map, **options)
        judged = gains(pair, tasks, shots, n_splits, order, rng)
        warn_far_values(pair[1], tasks)
    features = tasks.feature_names or tuple(f"x{j}" for j in range(tasks.n_features))
    features += ("intercept",) * bool(fit_intercept)
    variances = zip(found.whole.explained, found.whole.left, strict=True)
    gap, share, predicted = (found.interval(coverage, n) for n in ("gap", "share", "predicted"))
    columns = {
        name: (found.interval(coverage, "alone", j), found.interval(coverage, "unique", j))
        for j, name in enumerate(names)
    }
    return Advantage(
        gap, _agreeing(share, gap), predicted, columns, dict(zip(features, variances, strict=True)),
        judged, coverage, len(tasks), directions, Phi.shape[1], tasks.backend,
    )  # fmt: skip


def _percent(value: float, error: float) -> str:
    return f"{100 * value:.1f} ± {100 * error:.1f} %"


def in_percent(share: Interval) -> str:
    """Return a share and its interval as text, both within 0 and 100 %."""
    value, low, high = (f"{100 * min(max(number, 0.0), 1.0):.0f}" for number in share)
    return f"{value} % [{low}, {high}]"


def _checked(tasks: TaskSet, scale: str, coverage: float) -> TaskSet:
    """Return the tasks with points, and with a side row if there is a side table; or raise."""
    require_numbers(tasks, "advantage")
    if tasks.weight is not None:
        raise DataError("advantage takes no sample weights: leave them out, or repeat rows.")
    if scale not in SCALES:
        listed = ", ".join(map(repr, SCALES))
        raise DataError(f"The 'scale' parameter must be one of {listed}. Got {scale!r} instead.")
    check_coverage(coverage)
    usable = tasks.sizes > 0
    if tasks.side is not None:
        usable &= tasks.side.has(tasks.ids)
    return tasks.subset(np.flatnonzero(usable))


def _features(tasks: TaskSet, scales: Scales, feature_map: Any) -> tuple[np.ndarray, list[Any]]:
    """Return Phi (T, k), and the raw column that each feature comes from."""
    fmap = ComposedMap(feature_map)
    if fmap.needs_y:
        raise DataError(
            "advantage does not work with a feature map that reads y, because it would count "
            "label noise as explained. Use a map of X alone, such as MeanInput, or a side table."
        )
    X, y = scales.scaled(tasks.X), scales.target(tasks.y)
    scaled = TaskSet(X, y, tasks.offsets, tasks.ids, feature_names=tasks.feature_names)
    reads_table = fmap.reads_table and tasks.side is not None
    table = tasks.side.take(tasks.ids) if reads_table else None
    fmap.fit(table, scaled)
    Phi = fmap.transform(len(tasks), table=table, points=scaled)
    if not Phi.shape[1]:
        raise DataError("There is no side information to judge: pass side_info= or a map of X.")
    return Phi, raw_columns(fmap)


def _agreeing(share: Interval, gap: Interval) -> Interval:
    """Return the interval of the share, cut so that it includes 0 only if that of the gap does."""
    return share._replace(low=min(share.low, 0.0) if gap.holds_zero else max(share.low, 0.0))

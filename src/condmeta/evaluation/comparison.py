"""The result of a comparison: errors of learners on new tasks, by their number of points."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, overload

import numpy as np

from condmeta.evaluation.advantage import Advantage
from condmeta.evaluation.gains import Gain, gains_in_words
from condmeta.evaluation.report_words import words_of
from condmeta.learners.held_out import HeldOutAnswers, on_base
from condmeta.meta.criteria import Criterion
from condmeta.notebook import Strong, html_block, html_table, paragraph
from condmeta.persistence.atomic import write_atomically
from condmeta.tasks import TaskSet
from condmeta.tasks.frames import make_frame
from condmeta.text import pluralize
from condmeta.typing import Estimator, Frame, Order, PathLike

NEVER_ADVISED = "constant on base"  # it does not learn from a task's points
CLOSE = 0.01  # a relative difference that does not matter
AUTO = "auto"
AHEAD = "for known tasks, one step ahead"
SETTINGS = {  # arguments that make the default learners by hand, the simplest learner first
    "unconditional": "feature_map=None",
    "conditional": "",
    "never forgets": "drift=None",
    "forgets": 'drift="auto"',
    "transformed": "",
    "unconditional counts": "feature_map=None",
    "conditional counts": "",
    "task mean on base": 'feature_map=None, random="intercept", base="boosting"',
    "unconditional on base": 'feature_map=None, base="boosting"',
    "conditional on base": 'base="boosting"',
    AUTO: "",
}
LINEAR = "x_transform=None, y_transform=None"  # of the learners beside "transformed"


@dataclass(frozen=True, repr=False)
class Comparison:
    """The result of `compare`; it prints as a table and advice.

    Attributes
    ----------
    names : list of str
        The learners.
    models : dict of name -> learner
        The learners that can be used, fitted to all tasks.
    trials : list of HeldOutAnswers
        Predictions of each learner for held-out tasks, for each number of points.
    criterion : Criterion
        The error that was compared.
    advantage : Advantage or None
        What side information explains; None without side information, and for classes.
    gains : list of Gain
        What side information gains at each number of points.
    tasks : TaskSet
        All tasks of the comparison.
    order : "random" or "first"
        Which points of the held-out tasks the learners adapted to.
    positive : str or None
        The second of two classes, of more the true class; predictions are its probabilities.
    ahead : HeldOutAnswers or None
        With times: predictions for known tasks, one step ahead.

    Examples
    --------
    >>> import condmeta as cm
    >>> tasks = cm.environments.Circle(d=3, n=8).sample(60, random_state=0)
    >>> found = cm.compare(tasks, feature_map=cm.feature_maps.CircleMap(), shots=(0, 4))
    >>> found.best[0], found.advice.startswith("Use ConditionalRidge")
    ('conditional', True)
    >>> found.model.predict(tasks[:1]).shape
    (8,)
    """

    names: list[str]
    models: dict[str, Any]
    trials: list[HeldOutAnswers]
    criterion: Criterion
    advantage: Advantage | None
    gains: list[Gain]
    tasks: TaskSet
    order: Order = "random"
    positive: str | None = None
    ahead: HeldOutAnswers | None = None

    @property
    def shots(self) -> list[int]:
        """The numbers of points at which learners were compared."""
        return [trial.shot for trial in self.trials]

    @property
    def errors(self) -> np.ndarray:
        """The mean error over the held-out rows (shots, learners)."""
        mean = self.criterion.mean
        return np.array([mean(trial.answers, trial.y, trial.weight) for trial in self.trials])

    @property
    def best(self) -> dict[int, str]:
        """The learner with the smallest error, for each number of points."""
        at = self.errors.argmin(axis=1)
        return {m: self.names[c] for m, c in zip(self.shots, at, strict=True)}

    @property
    def frame(self) -> Frame:
        """A row for each number of points and learner.

        Columns: learner; shot, the number of points; error, and se, its standard error over tasks;
        behind, the difference to the best learner of this shot as a share of the best error, and
        behind_se, the standard error of this paired difference; n_tasks, n_rows.
        """
        columns = {name: np.array([row[name] for row in self.rows]) for name in self.rows[0]}
        return make_frame(columns, self.tasks.backend)

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """The rows of `frame`, each as a dict."""
        return [row for trial in self.trials for row in self._rows(trial)]

    @cached_property
    def ahead_rows(self) -> list[dict[str, Any]]:
        """The rows of known tasks, one step ahead: as in `rows`, but without a number of points."""
        if self.ahead is None:
            return []
        rows = self._rows(self.ahead)
        return [{name: row[name] for name in row if name != "shot"} for row in rows]

    @property
    def ahead_sentence(self) -> str:
        """The errors of known tasks, one step ahead; empty without times."""
        parts = [f"{row['learner']} {row['error']:.4g}" for row in self.ahead_rows]
        return f"Known tasks, one step ahead: {', '.join(parts)}." if parts else ""

    def _rows(self, trial: HeldOutAnswers) -> list[dict[str, Any]]:
        losses = self.criterion.losses(trial.answers, trial.y)
        error = np.average(losses, axis=0, weights=trial.weight)
        best = int(error.argmin())
        spread = by_task(losses, trial.task, trial.weight)
        unit = abs(error[best])  # log densities may have any sign
        behind = by_task(losses - losses[:, [best]], trial.task, trial.weight) / unit
        counts = {"n_tasks": len(trial.ids), "n_rows": len(trial.y)}
        return [
            {"learner": name, "shot": trial.shot, "error": error[c], "se": spread[c],
             "behind": (error[c] - error[best]) / unit, "behind_se": behind[c], **counts}
            for c, name in enumerate(self.names)
        ]  # fmt: skip

    @property
    def model(self) -> Estimator:
        """The advised learner, fitted to all tasks."""
        return self.models[self.advised]

    @property
    def call(self) -> str:
        """The call that makes the advised learner."""
        settings = [SETTINGS.get(self.advised, "")]
        if "transformed" in self.names and self.advised in ("unconditional", "conditional"):
            settings.append(LINEAR)
        return f"{type(self.model).__name__}({', '.join(filter(None, settings))})"

    @property
    def advised(self) -> str:
        """The name of the advised learner: the simplest of those with the smallest worst `behind`.

        Learners that are clearly behind at some number of points come last, "auto" before them.
        Differences of less than 1 % of the error do not count.
        """
        usable = [name for name in self.names if name in self.models and name != NEVER_ADVISED]
        rows = {name: self._rows_of(name) for name in usable}
        worst = {name: max(row["behind"] for row in rows[name]) for name in usable}
        near = [name for name in usable if not any(map(_is_clearly_behind, rows[name]))]
        near = [name for name in near if name != AUTO] or near or usable
        least = min(worst[name] for name in near)
        close = [name for name in near if worst[name] <= least + CLOSE]
        return next((name for name in SETTINGS if name in close), min(close, key=worst.__getitem__))

    def _rows_of(self, name: str) -> list[dict[str, Any]]:
        return [row for row in [*self.rows, *self.ahead_rows] if row["learner"] == name]

    @property
    def worst_row(self) -> dict[str, Any] | None:
        """Where the advised learner is furthest behind the best one; None if nowhere clearly."""
        worst = max(self._rows_of(self.advised), key=lambda row: row["behind"])
        return worst if _is_clearly_behind(worst) else None

    @property
    def advice(self) -> str:
        """Which learner to use, and why."""
        name, worst = self.advised, self.worst_row
        title = self.call if name in SETTINGS else f"{self.call} ({name})"
        why = "the best on held-out tasks, or within noise of it, at every number of points"
        if worst is not None:
            where = f"at {pluralize(worst['shot'], 'point')}" if "shot" in worst else AHEAD
            why = f"at most {100 * worst['behind']:.1f} % behind the best, {where}"
        return f"Use {title}: {why} ({', '.join(map(str, self.shots))})."

    @property
    def side_sentence(self) -> str:
        """Whether side information pays."""
        if self.advantage is not None:
            return self.advantage.sentence
        if not self.gains:
            return ""
        pays = any(gain.helps for gain in self.gains)
        verdict = "Side information pays" if pays else "Side information does not clearly pay"
        return f"{verdict}: {gains_in_words(self.gains)}."

    @overload
    def to_html(
        self, path: None = None, *, title: str | None = None, command: str | None = None,
        following: str | None = None,
    ) -> str: ...  # fmt: skip
    @overload
    def to_html(
        self, path: PathLike, *, title: str | None = None, command: str | None = None,
        following: str | None = None,
    ) -> Path: ...  # fmt: skip
    def to_html(
        self, path: PathLike | None = None, *, title: str | None = None, command: str | None = None,
        following: str | None = None,
    ) -> str | Path:  # fmt: skip
        """Return the report as one HTML page that opens offline, or write it to a file.

        Parameters
        ----------
        path : path, optional
            The file to write; then the path is returned.
        title, command : str, optional
            The title of the page, and the command that made it, which the page shows.
        following : str, optional
            What to run next; by default the lines of Python that fit and use the advised learner.
        """
        from condmeta.display.pages.comparison import render_comparison  # needs jinja2, matplotlib

        text = render_comparison(
            self, words_of(self), title=title, command=command, following=following
        )
        if path is None:
            return text
        write_atomically(path, lambda file: file.write(text.encode("utf-8")))
        return Path(path)

    def __repr__(self) -> str:
        width = max(map(len, self.names))
        lines = [f"Mean {self.criterion.title} on new tasks, by number of points:"]
        lines.append(" " * width + "".join(f"{m:>10}" for m in self.shots))
        for name, errors in zip(self.names, self.errors.T, strict=True):
            lines.append(name.ljust(width) + "".join(f"{e:>10.4g}" for e in errors))
        tasks = [len(trial.ids) for trial in self.trials]
        if len(set(tasks)) > 1:
            lines.append("(tasks)".ljust(width) + "".join(f"{n:>10,}" for n in tasks))
        if any(on_base(name) for name in self.names):
            lines.append("Base: boosted trees on features and side columns, one for all tasks.")
        lines += [self.ahead_sentence] if self.ahead is not None else []
        return "\n".join([*lines, self.advice, self.side_sentence]).rstrip()

    def _repr_html_(self) -> str:
        errors = self.errors
        least = errors.min(axis=1)
        shown = [
            [Strong(f"{error:.4g}") if error == low else error for error in row]
            for row, low in zip(errors, least, strict=True)
        ]
        rows = [[name, *(row[c] for row in shown)] for c, name in enumerate(self.names)]
        title = f"Mean {self.criterion.title} on new tasks, by number of points"
        table = html_table(["learner", *map(str, self.shots)], rows, title)
        more = [paragraph(text) for text in (self.ahead_sentence, self.side_sentence)]
        return html_block(table, paragraph(self.advice, True), *more)


def _is_clearly_behind(row: dict[str, Any]) -> bool:
    return row["behind"] > CLOSE + 2 * row["behind_se"]


def by_task(losses: np.ndarray, task: np.ndarray, weight: np.ndarray | None = None) -> np.ndarray:
    """Return standard errors (C,) of mean losses (N, C), with rows clustered by task.

    A row counts weight (N,) times, or once.
    """
    T = int(task.max()) + 1
    if T < 2:
        return np.full(losses.shape[1], np.inf)
    m = np.ones(len(task)) if weight is None else weight
    off = losses - np.average(losses, axis=0, weights=m)
    sums = np.array([np.bincount(task, m * column, T) for column in off.T])
    return np.sqrt((sums**2).sum(axis=1) * T / (T - 1)) / m.sum()

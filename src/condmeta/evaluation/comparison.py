"""What a comparison found: errors of learners on new tasks, by the points these have shown."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from condmeta.estimators.held_out import Trial, on_base
from condmeta.evaluation.advantage import Advantage
from condmeta.evaluation.gains import Gain, gains_in_words
from condmeta.meta.stacking import Criterion
from condmeta.tasks import TaskSet
from condmeta.tasks.frames import make_frame
from condmeta.words import count

CLOSE = 0.01  # a difference that does not matter
AUTO = "auto"
SETTINGS = {  # of the default learners, as they are made by hand
    AUTO: "",
    "conditional": "",
    "unconditional": "feature_map=None",
    "conditional on base": 'base="boosting"',
    "unconditional on base": 'feature_map=None, base="boosting"',
}


@dataclass(frozen=True, repr=False)
class Comparison:
    """Hold what `compare` found; printed it is a table and an advice.

    Attributes
    ----------
    names : list of str
        The learners.
    models : dict of name -> learner
        Those that can be used, fitted to all tasks.
    trials : list of Trial
        What each said of held-out tasks at each number of points.
    criterion : Criterion
        What was counted.
    advantage : Advantage or None
        What side information explains; None without any, and for classes.
    gains : list of Gain
        What side information gains at each number of points.
    tasks : TaskSet
        The tasks that were compared on.
    order : "random" or "first"
        Which points the held-out tasks showed.
    positive : str or None
        Of two classes the second, whose probability was told.

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
    trials: list[Trial]
    criterion: Criterion
    advantage: Advantage | None
    gains: list[Gain]
    tasks: TaskSet
    order: str = "random"
    positive: str | None = None

    @property
    def shots(self) -> list[int]:
        """The numbers of points that were compared at."""
        return [trial.shot for trial in self.trials]

    @property
    def errors(self) -> np.ndarray:
        """The mean error over the held-out rows (shots, learners)."""
        mean = self.criterion.mean
        return np.array([mean(trial.answers, trial.y, trial.weight) for trial in self.trials])

    @property
    def best(self) -> dict[int, str]:
        """The learner of least error for each number of points."""
        at = self.errors.argmin(axis=1)
        return {m: self.names[c] for m, c in zip(self.shots, at, strict=True)}

    @property
    def frame(self):
        """A row for each number of points and learner.

        Its columns: learner; shot, the number of points; error, and se, its standard error over
        tasks; behind, how far it is behind the best of this shot, as a share of its error, and
        behind_se, the standard error of the paired difference; n_tasks, n_rows.
        """
        columns = {name: np.array([row[name] for row in self.rows]) for name in self.rows[0]}
        return make_frame(columns, self.tasks.backend)

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """The rows of `frame`, each as a dict."""
        return [row for trial in self.trials for row in self._rows(trial)]

    def _rows(self, trial: Trial) -> list[dict[str, Any]]:
        losses = self.criterion.losses(trial.answers, trial.y)
        error = np.average(losses, axis=0, weights=trial.weight)
        best = int(error.argmin())
        spread = by_task(losses, trial.task, trial.weight)
        behind = by_task(losses - losses[:, [best]], trial.task, trial.weight) / error[best]
        return [
            {
                "learner": name,
                "shot": trial.shot,
                "error": error[c],
                "se": spread[c],
                "behind": error[c] / error[best] - 1,
                "behind_se": behind[c],
                "n_tasks": len(trial.ids),
                "n_rows": len(trial.y),
            }
            for c, name in enumerate(self.names)
        ]

    @property
    def model(self):
        """The learner that the advice names, fitted to all tasks."""
        return self.models[self.advised]

    @property
    def call(self) -> str:
        """How the learner that the advice names is made."""
        return f"{type(self.model).__name__}({SETTINGS.get(self.advised, '')})"

    @property
    def advised(self) -> str:
        """The name of the learner least behind anywhere, of those that are nowhere clearly behind.

        One learner is preferred to the choice among all, and side information to none.
        """
        rows = self.rows

        def clearly_behind(name: str) -> bool:
            mine = [row for row in rows if row["learner"] == name]
            return any(row["behind"] > CLOSE + 2 * row["behind_se"] for row in mine)

        usable = [name for name in self.names if name in self.models]
        near = [name for name in usable if not clearly_behind(name)]
        worst = {
            name: max(row["behind"] for row in rows if row["learner"] == name) for name in usable
        }
        if AUTO in near and any("conditional" in name for name in near):
            near = [name for name in near if "conditional" in name]
        return min(near or usable, key=lambda name: (worst[name], name.startswith("uncond")))

    @property
    def advice(self) -> str:
        """What to use, and why, in a sentence or two."""
        name = self.advised
        mine = [row for row in self.rows if row["learner"] == name]
        behind = max(mine, key=lambda row: row["behind"])
        title = self.call if name in SETTINGS else f"{self.call} ({name})"
        if behind["behind"] <= CLOSE + 2 * behind["behind_se"]:
            why = "the best on held-out tasks, or within noise of it, at every number of points"
        else:
            points = count(behind["shot"], "point")
            why = f"at most {100 * behind['behind']:.1f} % behind the best, at {points}"
        return f"Use {title}: {why} ({', '.join(map(str, self.shots))})."

    @property
    def side_sentence(self) -> str:
        """Whether side information pays."""
        if self.advantage is not None:
            return self.advantage.sentence
        if not self.gains:
            return ""
        pays = any(gain.is_clear for gain in self.gains)
        verdict = "Side information pays" if pays else "Side information does not clearly pay"
        return f"{verdict}: {gains_in_words(self.gains)}."

    def to_html(
        self,
        path: Any = None,
        *,
        title: str | None = None,
        command: str | None = None,
        following: str | None = None,
    ):
        """Return the report as one HTML page that needs nothing else, or write it to a file.

        Parameters
        ----------
        path : path, optional
            Where to write it; then the path comes back.
        title, command : str, optional
            What the page is called, and the command that made it, to be shown.
        following : str, optional
            What to run next; by default the lines of Python that fit and use what is advised.
        """
        from condmeta.report.comparison import render_comparison  # jinja2 and matplotlib

        text = render_comparison(self, title=title, command=command, following=following)
        if path is None:
            return text
        Path(path).write_text(text, encoding="utf-8")
        return Path(path)

    def __repr__(self) -> str:
        head = [f"Mean {self.criterion.title} on new tasks, by the points they have shown:"]
        width = max(map(len, self.names))
        lines = [" " * width + "".join(f"{m:>10}" for m in self.shots)]
        for c, name in enumerate(self.names):
            lines.append(name.ljust(width) + "".join(f"{e:>10.4g}" for e in self.errors[:, c]))
        tasks = [len(trial.ids) for trial in self.trials]
        if len(set(tasks)) > 1:  # those with more points than are shown
            lines.append("(tasks)".ljust(width) + "".join(f"{n:>10,}" for n in tasks))
        if any(on_base(name) for name in self.names):
            lines.append("Base: boosted trees on features and side columns, one for all tasks.")
        return "\n".join([*head, *lines, self.advice, self.side_sentence]).rstrip()


def by_task(losses: np.ndarray, task: np.ndarray, weight: np.ndarray | None = None) -> np.ndarray:
    """Return the standard errors (C,) of mean losses (N, C) over rows that cluster in tasks.

    Rows count weight (N,) times, or once.
    """
    T = int(task.max()) + 1
    if T < 2:
        return np.full(losses.shape[1], np.inf)
    m = np.ones(len(task)) if weight is None else weight
    off = losses - np.average(losses, axis=0, weights=m)
    sums = np.array([np.bincount(task, m * column, T) for column in off.T])
    return np.sqrt((sums**2).sum(axis=1) * T / (T - 1)) / m.sum()

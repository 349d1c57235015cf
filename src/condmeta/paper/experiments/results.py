"""The results of an experiment as one tidy table."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from condmeta.errors import DataError
from condmeta.tasks.frames import make_frame
from condmeta.typing import Axes, Frame, PathLike

if TYPE_CHECKING:
    from condmeta.display.plots import LearningCurveDisplay

BASELINES = "ITL", "mean", "unconditional"  # of the paper
COLUMNS = ("method", "seed", "T", "lam", "meta_step", "split", "error")


def standard_error(values: np.ndarray) -> float:
    """Return the standard error of a mean; nan for a single value.

    Examples
    --------
    >>> standard_error(np.array([1.0, 3.0]))
    1.0
    """
    return float(np.std(values, ddof=1) / np.sqrt(len(values))) if len(values) > 1 else np.nan


class Curve(NamedTuple):
    """The errors of one method after T tasks: mean and standard deviation over `n_seeds` seeds."""

    T: np.ndarray
    mean: np.ndarray
    std: np.ndarray
    n_seeds: int

    @property
    def standard_error(self) -> np.ndarray:
        """The standard error of the mean."""
        return self.std / np.sqrt(max(self.n_seeds, 1))


class Results:
    """Hold errors by method, seed, number of training tasks T, lam, meta_step and split.

    Rows with split "validation" hold the error of every pair (lam, meta_step) after the last
    training task. Rows with split "test" hold the error of the chosen pair after every training
    task. A parameter that a method does not have is nan.

    Parameters
    ----------
    columns : dict of arrays
        One array for each name of `COLUMNS`, all of the same length.
    provenance : dict
        How the results were made: version, engine, seeds, options, metric.

    Examples
    --------
    >>> from condmeta.experiments import Results
    >>> results = Results({"method": ["a", "a"], "seed": [0, 1], "T": [5, 5], "lam": [1.0, 1.0],
    ...     "meta_step": [0.1, 0.1], "split": ["test", "test"], "error": [2.0, 3.0]})
    >>> results.curve("a").mean
    array([2.5])
    """

    def __init__(self, columns: dict[str, Any], provenance: dict[str, Any] | None = None):
        lengths = {name: len(columns.get(name, ())) for name in COLUMNS}
        if set(columns) != set(COLUMNS) or len(set(lengths.values())) > 1:
            raise DataError(f"Results need the columns {COLUMNS} of equal length. Got {lengths}.")
        self.columns = {name: np.asarray(columns[name]) for name in COLUMNS}
        self.provenance = dict(provenance or {})

    def __len__(self) -> int:
        return len(self.columns["error"])

    @property
    def metric(self) -> str | None:
        """The name of the metric of all errors; None if it is not known, as in a CSV file."""
        return self.provenance.get("metric")

    @property
    def baselines(self) -> list[str]:
        """The methods that read no side information, as far as is known; pictures keep them."""
        known = self.provenance.get("baselines", BASELINES)
        return [name for name in self.methods if name in known]

    @property
    def methods(self) -> list[str]:
        """The methods, in the order of their first row."""
        return list(dict.fromkeys(self.columns["method"].tolist()))

    def curve(self, method: str, split: str = "test") -> Curve:
        """Return the learning curve of a method over the seeds."""
        rows = self._rows(method, split)
        T, seed, error = (self.columns[name][rows] for name in ("T", "seed", "error"))
        steps, seeds = np.unique(T), np.unique(seed)
        table = np.full((len(seeds), len(steps)), np.nan)
        table[np.searchsorted(seeds, seed), np.searchsorted(steps, T)] = error
        spread = table.std(axis=0, ddof=1) if len(seeds) > 1 else np.zeros(len(steps))
        return Curve(steps, table.mean(axis=0), spread, len(seeds))

    def finals(self, method: str) -> np.ndarray:
        """Return the test error after the last task, one number for each seed, by seed."""
        return self.columns["error"][self._last_rows(method)]

    def paired_finals(self, one: str, other: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the final test errors of two methods, in the same seeds."""
        seeds = [self.columns["seed"][self._last_rows(name)].tolist() for name in (one, other)]
        if seeds[0] != seeds[1]:
            raise DataError(
                f"{one!r} and {other!r} have results of different seeds, {seeds[0]} and "
                f"{seeds[1]}, and cannot be compared. Run both with the same seeds."
            )
        return self.finals(one), self.finals(other)

    def chosen(self, method: str) -> list[tuple[float, float]]:
        """Return the pair (lam, meta_step) chosen in each seed, by seed."""
        rows = self._last_rows(method)
        pairs = zip(self.columns["lam"][rows], self.columns["meta_step"][rows], strict=True)
        return [(float(lam), float(step)) for lam, step in pairs]

    def _runs(self) -> set[tuple[str, int]]:
        """Return the pairs of method and seed."""
        return set(zip(self.columns["method"].tolist(), self.columns["seed"].tolist(), strict=True))

    def _rows(self, method: str, split: str) -> np.ndarray:
        """Return the rows of one method and split, by seed."""
        rows = np.flatnonzero((self.columns["method"] == method) & (self.columns["split"] == split))
        if not rows.size:
            raise DataError(f"There are no {split} errors of {method!r}. Methods: {self.methods}.")
        return rows[np.argsort(self.columns["seed"][rows], kind="stable")]

    def _last_rows(self, method: str) -> np.ndarray:
        """Return the test rows of one method after its last task, by seed."""
        rows = self._rows(method, "test")
        T = self.columns["T"][rows]
        return rows[T.max() == T]

    @property
    def frame(self) -> Frame:
        """The table as a DataFrame: pandas, else polars, else PyArrow, else a NumPy array."""
        return make_frame(self.columns)

    def to_csv(self, path: PathLike) -> None:
        """Write the table as CSV."""
        with Path(path).open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(COLUMNS)
            writer.writerows(zip(*(self.columns[n].tolist() for n in COLUMNS), strict=True))

    def to_parquet(self, path: PathLike) -> None:
        """Write the table and its provenance as Parquet (needs pyarrow)."""
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError as error:
            raise ImportError(
                "to_parquet needs pyarrow: pip install pyarrow, or use to_csv."
            ) from error
        table = pa.table(dict(self.columns))
        metadata = {f"condmeta.{key}": str(value) for key, value in self.provenance.items()}
        pq.write_table(table.replace_schema_metadata(metadata), path)

    @classmethod
    def read_csv(cls, path: PathLike) -> Results:
        """Read a table that `to_csv` wrote."""
        with Path(path).open(newline="", encoding="utf-8") as file:
            names, *rows = csv.reader(file)
        kinds = {"method": str, "split": str, "seed": int, "T": int}
        parts = zip(*rows, strict=True) if rows else ([] for _ in names)
        return cls(
            {name: [kinds.get(name, float)(v) for v in part]
             for name, part in zip(names, parts, strict=True)}
        )  # fmt: skip

    def __add__(self, other: Results) -> Results:
        named = {results.metric for results in (self, other)} - {None}
        if len(named) > 1:
            raise DataError(
                f"Errors of two metrics, {self.metric!r} and {other.metric!r}, cannot be in one "
                "table. Run both with the same metric=."
            )
        for method, seed in self._runs() & other._runs():
            raise DataError(
                f"Both tables have results of {method!r} in seed {seed}. Rename the method, or run "
                "other seeds."
            )
        joined = {n: np.concatenate([self.columns[n], other.columns[n]]) for n in COLUMNS}
        baselines = {"baselines": [*self.baselines, *other.baselines]}
        return Results(joined, self.provenance | other.provenance | baselines)

    def plot(
        self, ax: Axes | None = None, *, methods: Sequence[str] | None = None, **options: Any
    ) -> LearningCurveDisplay:
        """Draw the learning curves of all methods, or of those named.

        `title`, `legend` and `most`, the number of methods to draw, are options of
        `condmeta.plots.LearningCurveDisplay.plot`.
        """
        from condmeta.display.plots import LearningCurveDisplay

        return LearningCurveDisplay.from_results(self, methods).plot(ax, **options)

    def __repr__(self) -> str:
        seeds = len(np.unique(self.columns["seed"]))
        return f"Results({len(self)} rows, methods={self.methods}, seeds={seeds})"

"""The results of an experiment as one tidy table."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from condmeta.errors import DataError
from condmeta.tasks.frames import make_frame

COLUMNS = ("method", "seed", "T", "lam", "meta_step", "split", "error")


class Curve(NamedTuple):
    """Errors of one method after T tasks: mean and standard deviation over the seeds, count."""

    T: np.ndarray
    mean: np.ndarray
    std: np.ndarray
    n_seeds: int

    @property
    def standard_error(self) -> np.ndarray:
        """The standard error of the mean."""
        return self.std / np.sqrt(max(self.n_seeds, 1))


class Results:
    """Errors by method, seed, number of training tasks T, lam, meta_step and split.

    Rows with split "validation" hold the error of every pair after the last training task; rows
    with split "test" the error of the chosen pair after every training task. A parameter that a
    method does not have is nan.

    Parameters
    ----------
    columns : dict of equally long arrays, with the names of `COLUMNS`
    provenance : dict
        What made the results: version, engine, seeds, options.

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
            raise DataError(f"Results have the columns {COLUMNS}, equally long. Got {lengths}.")
        self.columns = {name: np.asarray(columns[name]) for name in COLUMNS}
        self.provenance = dict(provenance or {})

    def __len__(self) -> int:
        return len(self.columns["error"])

    @property
    def methods(self) -> list[str]:
        """The methods, in the order of their first row."""
        return list(dict.fromkeys(self.columns["method"].tolist()))

    def curve(self, method: str, split: str = "test") -> Curve:
        """Return the learning curve of a method over the seeds."""
        mine = (self.columns["method"] == method) & (self.columns["split"] == split)
        if not mine.any():
            raise DataError(f"There are no {split} errors of {method!r}. Methods: {self.methods}.")
        T, seed, error = (self.columns[name][mine] for name in ("T", "seed", "error"))
        steps, seeds = np.unique(T), np.unique(seed)
        table = np.full((len(seeds), len(steps)), np.nan)
        table[np.searchsorted(seeds, seed), np.searchsorted(steps, T)] = error
        spread = table.std(axis=0, ddof=1) if len(seeds) > 1 else np.zeros(len(steps))
        return Curve(steps, table.mean(axis=0), spread, len(seeds))

    def finals(self, method: str) -> np.ndarray:
        """Return the test error after the last task, one number for each seed in their order."""
        mine = (self.columns["method"] == method) & (self.columns["split"] == "test")
        last = mine & (self.columns["T"] == self.columns["T"][mine].max())
        return self.columns["error"][last][np.argsort(self.columns["seed"][last], kind="stable")]

    def chosen(self, method: str) -> list[tuple[float, float]]:
        """Return the pair (lam, meta_step) chosen in each seed."""
        mine = (self.columns["method"] == method) & (self.columns["split"] == "test")
        last = np.flatnonzero(mine & (self.columns["T"] == self.columns["T"][mine].max()))
        order = last[np.argsort(self.columns["seed"][last], kind="stable")]
        return [(float(self.columns["lam"][i]), float(self.columns["meta_step"][i])) for i in order]

    def frame(self, backend: str | None = None):
        """Return the table as a DataFrame: pandas, or the kind named by `backend`."""
        return make_frame(self.columns, backend)

    def to_csv(self, path) -> None:
        """Write the table as CSV."""
        with Path(path).open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(COLUMNS)
            writer.writerows(zip(*(self.columns[n].tolist() for n in COLUMNS), strict=True))

    def to_parquet(self, path) -> None:
        """Write the table as Parquet, provenance included (needs pyarrow)."""
        try:
            import pyarrow as pa
            import pyarrow.parquet as pq
        except ImportError as error:
            raise ImportError(
                "Parquet needs pyarrow: pip install pyarrow, or use to_csv."
            ) from error
        table = pa.table(dict(self.columns))
        told = {f"condmeta.{key}": str(value) for key, value in self.provenance.items()}
        pq.write_table(table.replace_schema_metadata(told), path)

    @classmethod
    def read_csv(cls, path) -> Results:
        """Read what `to_csv` wrote."""
        with Path(path).open(newline="", encoding="utf-8") as file:
            names, *rows = csv.reader(file)
        kinds = {"method": str, "split": str, "seed": int, "T": int}
        parts = zip(*rows, strict=True) if rows else ([] for _ in names)
        return cls(
            {name: [kinds.get(name, float)(v) for v in part]
             for name, part in zip(names, parts, strict=True)}
        )  # fmt: skip

    def __add__(self, other: Results) -> Results:
        joined = {n: np.concatenate([self.columns[n], other.columns[n]]) for n in COLUMNS}
        return Results(joined, self.provenance | other.provenance)

    def plot(self, ax=None, **options):
        """Draw the learning curves; see `condmeta.plots.LearningCurveDisplay`."""
        from condmeta.plots import LearningCurveDisplay

        return LearningCurveDisplay.from_results(self, **options).plot(ax=ax)

    def __repr__(self) -> str:
        seeds = len(np.unique(self.columns["seed"]))
        return f"Results({len(self)} rows, methods={self.methods}, seeds={seeds})"

"""Decode a model with some of its tasks: only their rows are read of arrays by task."""

from __future__ import annotations

from contextlib import contextmanager
from numbers import Real
from typing import Any

import numpy as np

from condmeta.persistence import registry
from condmeta.persistence.decoder import Decoder
from condmeta.persistence.members import StoredArray

NO_ROWS = np.empty(0, np.int64)


class DecoderOfTasks(Decoder):
    """Decode one value with the tasks that are wanted; the file has to be open.

    A class says what is read of its fields (`by_task` of `register`). Whatever is read is checked
    as in a whole model; what is not read is not checked.
    """

    def __init__(self, arrays: list[StoredArray], wanted: set[Any]) -> None:
        super().__init__(arrays)  # type: ignore[arg-type]
        self.wanted = wanted
        self.at: np.ndarray | None = None  # the rows to read; None: all

    def decode_all(self, value: Any) -> Any:
        """Return the value of its JSON; arrays of dropped fields are not used."""
        return self.decode(value)

    def take(self, index: int) -> np.ndarray:
        stored: Any = super().take(index)
        return stored.read() if self.at is None else stored.rows(self.at)

    @contextmanager
    def rows(self, at: np.ndarray | None):
        """Read these rows of arrays inside."""
        before, self.at = self.at, at
        yield
        self.at = before

    def decode_transposed(self, payload: int) -> np.ndarray:
        at = self.at
        with self.rows(None):
            array = self.take(payload).T
        return array if at is None else array[at]

    def decode_objects(self, payload: list[Any]) -> np.ndarray:
        at = self.at
        with self.rows(None):
            array = super().decode_objects(payload)
        return array if at is None else array[at]

    def decode_object(self, payload: dict[str, Any]) -> Any:
        entry = registry.find_by_name(payload["class"])
        if entry is not None and entry.by_task == "drop":
            return None
        return super().decode_object(payload)

    def decode_state(self, entry: registry.Entry, state: dict[str, Any]) -> dict[str, Any]:
        """Return the values of the fields of an object, of the wanted tasks."""
        if not isinstance(entry.by_task, dict):
            return super().decode_state(entry, state)
        ids, at = self._find(state["ids"])
        rows, found = {"rows": at, "none": NO_ROWS}, {}
        for name, value in state.items():
            how = entry.by_task.get(name, "whole")
            if name == "ids" or how == "drop":
                found[name] = ids if name == "ids" else None
                continue
            with self.rows(rows.get(how)):
                found[name] = self.inside(f".{name}", value)
        return found

    def _find(self, ids: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
        """Return the wanted ids of a column, and their positions, which rise."""
        column = ids["objects"][1]
        if type(column) is dict and column["column"]["codes"] is None:
            ((kind, payload),) = column["column"]["parts"]
            if kind == "int":  # no need to make an object of each
                array = self.take(payload)
                at = np.flatnonzero(np.isin(array, _whole_numbers(self.wanted)))
                return array[at].astype(object), at
        values = self.inside(".ids", ids)
        known = [i for i, task in enumerate(values.tolist()) if task in self.wanted]
        at = np.array(known, np.int64)
        return values[at], at


def _whole_numbers(values: set[Any]) -> np.ndarray:
    numbers = [v for v in values if isinstance(v, Real) and -(2**63) <= v < 2**63]
    return np.array([int(v) for v in numbers if int(v) == v], np.int64)

"""Task ids: from any column to integer codes and back.

An id is a Python str, int, float, bool, date, datetime or a tuple of these. Ids are in the order of
first appearance, never sorted, because the order of tasks matters to an online learner.
"""

import sys
from collections.abc import Iterable, Sequence
from datetime import date, datetime
from itertools import repeat
from typing import Any

import numpy as np

from condmeta.errors import DataError
from condmeta.tasks import frames
from condmeta.tasks.codes import int_codes, object_codes, text_codes
from condmeta.tasks.numbers import is_na, level_name, refuse_masked
from condmeta.text import pluralize

_PLAIN = {str, int, bool, date, datetime}


def factorize(values: Any, *, what: str = "task") -> tuple[np.ndarray, np.ndarray]:
    """Code the ids of a column as 0, 1, 2, ... in the order of first appearance.

    Cost: at most a sort of N integers, or N dictionary look-ups for text.

    Parameters
    ----------
    values : array-like (N,), or table or array (N, m)
        Several columns make tuple ids; a table of one column is that column.
    what : str
        What the ids are called in messages.

    Returns
    -------
    codes : (N,) int64
    ids : (T,) object; ``ids[codes]`` is the column

    Examples
    --------
    >>> codes, ids = factorize(["b", "a", "b"])
    >>> codes.tolist(), ids.tolist()
    ([0, 1, 0], ['b', 'a'])
    """
    if frames.is_frame(values):
        frame = frames.eager(values)
        columns = [frames.get_series(frame, name) for name in frames.column_names(frame)]
        return combine(columns, what)
    if frames.is_series(values):
        try:
            codes, ids = _series_codes(values)
        except TypeError as error:  # ids that are lists, say
            raise DataError(f"An id must be hashable: {error}.") from error
    elif isinstance(values, np.ndarray):
        refuse_masked(values, f"The {what} column")
        if values.ndim == 2:
            return combine(list(values.T), what)
        if values.ndim != 1:
            raise DataError(f"{what} must hold one id per row, got shape {values.shape}.")
        codes, ids = _array_codes(values)
    elif isinstance(values, str) or not isinstance(values, Iterable):
        raise DataError(f"{what} must hold one id per row, got {values!r}.")
    else:
        codes, ids = object_codes(list(values))
    return _finish(codes, ids, what)


def _finish(codes: np.ndarray, ids: list, what: str) -> tuple[np.ndarray, np.ndarray]:
    """Make ids plain Python objects, merge those that become equal, refuse missing ones."""
    if not set(map(type, ids)) <= _PLAIN:
        ids = [_plain(value, what) for value in ids]
        if len(set(ids)) < len(ids):
            merged, ids = object_codes(ids)
            codes = np.append(merged, -1)[codes]  # -1 (missing) selects the extra last entry
    missing = codes < 0
    if None in ids:
        missing |= codes == ids.index(None)
    if missing.any():
        rows = np.flatnonzero(missing)
        shown = ", ".join(map(str, rows[:5].tolist())) + (", ..." if rows.size > 5 else "")
        gaps, where = pluralize(rows.size, "missing value"), "row" if rows.size == 1 else "rows"
        raise DataError(
            f"The {what} ids have {gaps} among {codes.size:,} rows ({where} {shown}): give every "
            "row an id, or drop it."
        )
    _refuse_twins(ids, what)
    return codes, as_id_array(ids)


def _refuse_twins(ids: list, what: str) -> None:
    """Raise if two ids differ by their type alone, as 3 and "3" do."""
    kinds = set(map(type, ids))
    if kinds == {tuple}:
        kinds = {tuple(map(type, task_id)) for task_id in ids}
    if len(kinds) < 2:
        return
    by_text: dict[Any, Any] = {}
    for task_id in ids:
        text = tuple(map(level_name, task_id if isinstance(task_id, tuple) else (task_id,)))
        twin = by_text.setdefault(text, task_id)
        if twin is not task_id:
            raise DataError(
                f"The {what} ids {twin!r} and {task_id!r} differ by their type alone: convert the "
                "ids to one type."
            )


def as_id_array(ids: Sequence[Any]) -> np.ndarray:
    """Return Python ids as a 1-D object array; a tuple is one entry."""
    return np.fromiter(ids, dtype=object, count=len(ids))


def _array_codes(values: np.ndarray) -> tuple[np.ndarray, list]:
    kind = values.dtype.kind
    if kind in "iub":
        codes, first = int_codes(values)
        return codes, values[first].tolist()
    if kind == "f":
        gaps = np.isnan(values)
        codes, first = int_codes((values + 0.0).astype(np.float64).view(np.int64))
        return np.where(gaps, -1, codes), values[first].tolist()
    if kind == "M":
        gaps = np.isnat(values)
        codes, first = int_codes(values.view(np.int64))
        return np.where(gaps, -1, codes), _from_datetime64(values[first])
    return text_codes(values) if kind == "U" else object_codes(values)


def _from_datetime64(values: np.ndarray) -> list:
    """Convert datetime64 to dates (units of a day or more) or datetimes."""
    days = np.datetime_data(values.dtype)[0] in ("Y", "M", "W", "D")
    coarse = values.astype("M8[D]" if days else "M8[us]")
    if (coarse.astype(values.dtype) != values)[~np.isnat(values)].any():
        raise DataError("Task ids are times finer than a microsecond: round them first.")
    return coarse.astype(object).tolist()


def _series_codes(series: Any) -> tuple[np.ndarray, list]:
    """Code a column with its own library; -1 is a missing id."""
    backend = frames.backend_of(series)
    if backend == "pandas":
        codes, ids = series.factorize()
        return codes.astype(np.int64), ids.tolist()
    if backend == "pyarrow":
        native = frames.as_native(series)
        if native.type.num_fields:  # lists and structs have no dictionary
            return object_codes(native.to_pylist())
        chunks = native.dictionary_encode().unify_dictionaries()
        encoded = chunks.combine_chunks()
        codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        # the entries of the dictionary may be in another order, or unused
        seen, first = int_codes(codes)
        entries = encoded.dictionary.to_pylist()
        return seen, [None if code < 0 else entries[code] for code in codes[first].tolist()]
    import narwhals.stable.v2 as nw

    column = nw.from_native(series, series_only=True)
    dtype = column.dtype
    zoned = isinstance(dtype, nw.Datetime) and dtype.time_zone is not None
    simple = dtype.is_integer() or dtype.is_float() or isinstance(dtype, nw.Date | nw.Datetime)
    if column.null_count() == 0 and simple and not zoned:
        return _array_codes(column.to_numpy())
    if backend == "polars" and dtype == nw.String and column.null_count() == 0:
        distinct = series.unique(maintain_order=True)
        coded = series.cast(sys.modules["polars"].Enum(distinct)).to_physical()
        return coded.to_numpy().astype(np.int64), distinct.to_list()
    return object_codes(column.to_list())


def combine(columns: list, what: str = "task") -> tuple[np.ndarray, np.ndarray]:
    """Code several columns as tuple ids; one column keeps its plain ids."""
    if not columns:
        raise DataError(f"The {what} ids need at least one column.")
    if len(columns) == 1:
        return factorize(columns[0], what=what)
    coded = [factorize(column, what=what) for column in columns]
    joint = coded[0][0]
    first = np.empty(0, np.int64)
    for codes, ids in coded[1:]:
        joint, first = int_codes(joint * max(1, len(ids)) + codes)
    return joint, as_id_array(list(zip(*(i[c[first]].tolist() for c, i in coded), strict=True)))


def _plain(value: Any, what: str) -> Any:
    """Return an id as a plain Python object, None if it is missing."""
    if is_na(value):
        return None
    if isinstance(value, np.datetime64):
        return None if np.isnat(value) else _from_datetime64(np.array([value]))[0]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, tuple):
        parts = tuple(_plain(part, what) for part in value)
        return None if None in parts else parts
    if hasattr(value, "to_pydatetime"):
        if getattr(value, "nanosecond", 0):
            raise DataError("Task ids are times finer than a microsecond: round them first.")
        return value.to_pydatetime()
    for kind in (bool, int, str, float):
        if isinstance(value, kind):
            return kind(value)
    if isinstance(value, date):
        return value
    raise DataError(
        f"The {what} ids must be text, numbers, booleans, dates or tuples of them; "
        f"got {value!r} of type {type(value).__name__}: convert it to text."
    )


def group_rows(codes: np.ndarray, n_tasks: int) -> tuple[np.ndarray, np.ndarray]:
    """Group the rows by task; the rows of a task keep their order.

    Returns
    -------
    order : (N,) int64; ``codes[order]`` is sorted
    offsets : (T+1,) int64; task t has the rows ``order[offsets[t]:offsets[t + 1]]``

    Examples
    --------
    >>> order, offsets = group_rows(np.array([0, 1, 0]), 2)
    >>> order.tolist(), offsets.tolist()
    ([0, 2, 1], [0, 2, 3])
    """
    offsets = np.zeros(n_tasks + 1, np.int64)
    np.cumsum(np.bincount(codes, minlength=n_tasks), out=offsets[1:])
    if (codes[1:] >= codes[:-1]).all():
        return np.arange(codes.size, dtype=np.int64), offsets
    # NumPy sorts 16-bit keys by counting: two passes are faster than one 64-bit sort
    order = np.argsort((codes & 0xFFFF).astype(np.uint16), kind="stable")
    if n_tasks > 1 << 16:
        if n_tasks > 1 << 32:
            return np.argsort(codes, kind="stable"), offsets
        high = (codes >> 16).astype(np.uint16)
        order = order[np.argsort(high[order], kind="stable")]
    return order.astype(np.int64, copy=False), offsets


def positions(ids: Iterable[Any], wanted: Iterable[Any]) -> np.ndarray:
    """Return the position of each wanted id among ids, or -1."""
    asked, index = list(wanted), {task_id: at for at, task_id in enumerate(ids)}
    return np.fromiter(map(index.get, asked, repeat(-1)), np.int64, len(asked))


def id_columns(ids: Iterable[Any], name: Any = None) -> dict[str, np.ndarray]:
    """Return ids as columns of a table: one column, or one for each part of tuple ids.

    `name` is the name of the task column, or a tuple of names.
    """
    listed = list(ids)
    width = len(listed[0]) if listed and isinstance(listed[0], tuple) else 0
    if not width or any(not isinstance(i, tuple) or len(i) != width for i in listed):
        single = name[0] if isinstance(name, tuple) and len(name) == 1 else name
        return {str(single) if single is not None else "task": _compact(listed)}
    names = name if isinstance(name, tuple) and len(name) == width else None
    names = names or tuple(f"{name or 'task'}_{j}" for j in range(width))
    parts = zip(*listed, strict=True)
    return {str(n): _compact(list(part)) for n, part in zip(names, parts, strict=True)}


def _compact(values: list) -> np.ndarray:
    """Return ids of one numeric type as numbers, others as objects."""
    kinds = set(map(type, values))
    if kinds in ({int}, {bool}, {float}):
        array = np.array(values)
        if array.dtype.kind in "ibf":
            return array
    return as_id_array(values)

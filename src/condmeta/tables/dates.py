"""Dates as features: weekday, month, the days since a start, and holidays by choice."""

import re
from collections.abc import Collection, Sequence
from datetime import date, datetime, time
from typing import Any, NamedTuple

import numpy as np

from condmeta.errors import DataError
from condmeta.persistence.fields import TEXT, Field, maybe, one_of, sequence
from condmeta.persistence.registry import register_tuple
from condmeta.tasks.frames import get_raw
from condmeta.tasks.numbers import is_empty, is_na
from condmeta.tasks.times import read_times
from condmeta.typing import Frame

PARTS = "weekday", "month", "days"
WEEKDAYS = np.array(["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"], object)
MONTHS = np.array(
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"], object
)
_WRITTEN = re.compile(
    r"\s*(?:(\d{4})([-/.])(\d{1,2})\2(\d{1,2})|(\d{1,2})([-/.])(\d{1,2})\6(\d{4}))"
    r"(?:[T ]\s*(\d{1,2}:\d{2}\S*))?\s*"
)


class DateReader(NamedTuple):
    """How one column of dates becomes features.

    Attributes
    ----------
    start : str
        The earliest date that fit saw, as 2024-01-31; days are counted from it.
    parts : list of str
        Which of "weekday", "month" and "days" are used.
    order : "ymd", "dmy" or "mdy"
        The order of year, month and day where dates are text.
    country : str or None
        Country of the holidays, such as "DE" or "US-NY".

    Examples
    --------
    >>> reader = DateReader("2024-01-01", ["weekday", "days"])
    >>> reader.read(np.array(["2024-01-06", "2024-02-01"], "datetime64[D]"), "day")
    {'day (weekday)': array(['Sat', 'Thu'], dtype=object), 'day (days)': array([ 5., 31.])}
    """

    start: str
    parts: Sequence[str]
    order: str = "ymd"
    country: str | None = None

    def names(self, name: str) -> list[str]:
        """Return the names of the columns that a column of dates becomes."""
        holiday = ["holiday"] if self.country else []
        return [f"{name} ({part})" for part in [*self.parts, *holiday]]

    def read(self, values: np.ndarray, name: str) -> dict[str, np.ndarray]:
        """Return the features of dates: text for weekday and month, else numbers; gaps stay."""
        found = as_dates(values, name, self.order)
        columns: dict[str, np.ndarray] = {}
        for part in self.parts:
            columns[f"{name} ({part})"] = _part(found, part, self.start)
        if self.country:
            columns[f"{name} (holiday)"] = _holidays(found, self.country)
        return columns

    def note(self, name: str, example: str) -> str:
        """Say how a column is read."""
        words = {"days": f"the days since {self.start}"}
        said = [words.get(part, part) for part in self.parts]
        said += [f"holidays of {self.country}"] * (self.country is not None)
        written = "" if self.order == "ymd" else f", written {'.'.join(self.order)}"
        listed = said[0] if len(said) == 1 else f"{', '.join(said[:-1])} and {said[-1]}"
        return f"Column {name!r} holds dates{written}: its features are {listed}"

    def describe(self) -> str:
        """Return how the column is read, for a model card."""
        return self.note("", "").split("features are ")[1]


def _is_date(value: Any, sizes: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(r"\d{4}-\d{2}-\d{2}", value) is not None


register_tuple(
    DateReader,
    fields={
        "start": Field("a date such as 2024-01-31", _is_date),
        "parts": sequence(one_of(*PARTS), distinct=True), "order": one_of("ymd", "dmy", "mdy"),
        "country": maybe(TEXT),
    },
)  # fmt: skip


def find_dates(
    values: np.ndarray, name: str, parts: Collection[str] | None, country: str | None, *,
    of_tasks: bool = False,
) -> DateReader | None:  # fmt: skip
    """Return how a column of dates is read, or None if it holds no dates.

    If `parts` is None, dates of rows become weekday and days, and also month if all twelve occur:
    before, a month tells the same as the days, and the next one has never been seen. Dates of
    tasks, such as the opening of a store, become days. A part that is the same in all rows is left
    out, unless it is the only one.
    """
    if values.dtype.kind == "M":
        order = "ymd"
    elif values.dtype == object:
        try:
            filled = {v for v in set(values.tolist()) if not is_na(v)}
        except TypeError:  # lists and the like: no dates
            return None
        if not filled:
            return None
        if all(isinstance(v, str) for v in filled):
            order = _find_order(filled, name)
            if order is None:
                return None
        elif all(isinstance(v, date) for v in filled):
            order = "ymd"
        else:
            return None
    else:
        return None
    unknown = sorted(set(parts or ()) - set(PARTS))
    if unknown:
        raise DataError(
            f"The 'dates' parameter of TableModel must name some of {', '.join(PARTS)}. "
            f"Got {unknown[0]!r} instead."
        )
    found = as_dates(values, name, order)
    found = found[~np.isnat(found)]
    if parts is None:
        whole_year = np.unique(_part(found, "month", "1970-01-01")).size == len(MONTHS)
        parts = ["days"] if of_tasks else PARTS if whole_year else ["weekday", "days"]
    if found.size == 0 or not (parts or country):
        return None
    start = str(found.min().astype("datetime64[D]"))
    varying = [part for part in PARTS if part in parts and _varies(_part(found, part, start))]
    if country:
        _holidays(found[:1], country)  # an unknown country is an error now
    return DateReader(start, varying or list(parts)[:1], order, country)


def as_dates(values: np.ndarray, name: str, order: str) -> np.ndarray:
    """Return dates (N,) of type datetime64[s] from dates or text, NaT for gaps."""
    if values.dtype.kind == "M":
        return values.astype("datetime64[s]")
    known: dict[Any, np.datetime64] = {}
    if values.dtype != object:
        if not is_empty(values):
            raise DataError(f"Column {name!r} held dates in fit and holds numbers now.")
        return np.full(len(values), np.datetime64("NaT", "s"))
    for value in dict.fromkeys(values.tolist()):
        found = None if is_na(value) else _read_date(value, order)
        if found is None and not is_na(value):
            row = values.tolist().index(value) + 1
            raise DataError(
                f"Column {name!r} holds dates, but {str(value)!r} in row {row:,}",
                ": write it as 2024-01-31, or leave the cell empty.",
            )
        known[value] = np.datetime64("NaT" if found is None else found, "s")
    return np.array([known[value] for value in values.tolist()], "datetime64[s]")


def read_time_column(frame: Frame, name: str) -> np.ndarray:
    """Return the times of rows (N,): numbers, dates, or dates that are text."""
    values = get_raw(frame, name)
    if values.dtype == object and any(isinstance(value, str) for value in values.tolist()):
        values = read_text_dates(values, name)
    return read_times(values, len(values), f"Column {name!r}")


def read_text_dates(values: np.ndarray, name: str) -> np.ndarray:
    """Return dates (N,) of text such as 2024-01-31 or 31.1.2024, NaT for gaps.

    Each table is read by itself. A month before the day is refused: another table might leave the
    order open.
    """
    texts = {value for value in values.tolist() if isinstance(value, str)}
    order = _find_order(texts, name)
    return as_dates(values, name, "dmy" if order == "dmy" else "ymd")


def _read_date(value: Any, order: str) -> datetime | None:
    if isinstance(value, date):
        return datetime(*value.timetuple()[:6])
    written = _WRITTEN.fullmatch(str(value))
    if written is None:
        return None
    year, _, month, day, first, _, second, last, clock = written.groups()
    if year is None:
        if order == "ymd":
            return None
        year, (day, month) = last, (first, second) if order == "dmy" else (second, first)
    try:
        at = time.fromisoformat(clock.zfill(5)) if clock else time()
        return datetime.combine(date(int(year), int(month), int(day)), at).replace(tzinfo=None)
    except ValueError:
        return None


def _find_order(texts: Collection[str], name: str) -> str | None:
    """Return the order in which dates are written; None if some text is no date."""
    found = [_WRITTEN.fullmatch(text) for text in texts]
    written = [match for match in found if match is not None]
    if len(written) < len(found):
        return None
    if all(match[1] for match in written):
        return "ymd"
    if any(match[1] for match in written):
        return None
    fits = {order: all(_read_date(text, order) for text in texts) for order in ("dmy", "mdy")}
    if fits["dmy"] and fits["mdy"] and any(match[6] != "." for match in written):
        example = next((m[0] for m in written if m[5] != m[7]), written[0][0])
        raise DataError(
            f"Column {name!r} holds dates such as {example.strip()!r}",
            ": is the day or the month first? Write them as 2024-01-31.",
        )
    return next((order for order, fit in fits.items() if fit), None)


def _part(found: np.ndarray, part: str, start: str) -> np.ndarray:
    """Return one part of dates (N,): text, or the days since the start as a number."""
    gap, days = np.isnat(found), found.astype("datetime64[D]")
    if part == "days":
        since = (found - np.datetime64(start, "s")).astype(float) / 86400
        return np.where(gap, np.nan, since)
    if part == "weekday":  # day 0 was a Thursday
        texts = WEEKDAYS[(days.astype(np.int64) + 3) % 7]
    else:
        texts = MONTHS[days.astype("datetime64[M]").astype(np.int64) % 12]
    return np.where(gap, None, texts)


def _varies(values: np.ndarray) -> bool:
    return bool((values != values[0]).any())


def _holidays(found: np.ndarray, country: str) -> np.ndarray:
    """Return 1 for dates that are public holidays, else 0; NaN for gaps."""
    try:
        import holidays
    except ImportError as error:
        raise ImportError('Holidays need a package: pip install "condmeta[dates]".') from error
    name, _, region = country.partition("-")
    try:
        calendar = holidays.country_holidays(name, subdiv=region or None)
    except NotImplementedError:
        raise DataError(
            f"There are no holidays for {country!r}: give a country such as DE, or a region such "
            "as US-NY."
        ) from None
    gap, days = np.isnat(found), found.astype("datetime64[D]")
    is_one = {day: float(day.item() in calendar) for day in np.unique(days[~gap])}
    return np.array(
        [np.nan if missing else is_one[day] for day, missing in zip(days, gap, strict=True)]
    )

"""Save a registered object as a model file, read it back, or read only its card."""

import math
import os
import platform
from datetime import UTC, datetime
from typing import Any

import numpy as np

from condmeta.errors import ModelFileError
from condmeta.persistence.container import (
    FORMAT,
    FORMAT_VERSION,
    open_container,
    read_container,
    write_container,
)
from condmeta.persistence.decoder import Decoder
from condmeta.persistence.encoder import encode
from condmeta.persistence.file_errors import errors_name_field, errors_name_file
from condmeta.persistence.some_tasks import DecoderOfTasks
from condmeta.warn import warn

ENDING = ".condmeta"


def write_model(path: str | os.PathLike, obj: Any, *, card: dict[str, Any]) -> None:
    """Write an object to a model file, atomically.

    Parameters
    ----------
    path : path
        The file to write. An old model is replaced only once the new one is complete. A file of
        another kind, such as a table, is not replaced, unless its name ends in .condmeta.
    obj : object
        An object of a registered class, of values that can be stored (see `encode`).
    card : dict
        What a reader should know before loading: engine, sizes, schema, settings. It holds dicts,
        lists, strings and numbers; infinities and NaN are written as strings. Format, versions,
        date and class are added.

    Notes
    -----
    The same object gives the same bytes if the environment variable SOURCE_DATE_EPOCH is set.
    """
    _refuse_foreign(path)
    model, arrays = encode(obj)
    automatic = {
        "format": FORMAT, "format_version": FORMAT_VERSION,
        "condmeta_version": _version("condmeta"), "created": _created(),
        "python_version": platform.python_version(), "numpy_version": np.__version__,
        "scikit_learn_version": _version("scikit-learn"), "class": type(obj).__name__,
    }  # fmt: skip
    taken = sorted(automatic.keys() & card.keys())
    if taken:
        raise ValueError(f"The card must not set {', '.join(taken)}: they are filled in.")
    write_container(path, automatic | _plain(card, "card"), model, arrays)


def _refuse_foreign(path: str | os.PathLike) -> None:
    """Refuse to replace a file that is no model."""
    name = os.fspath(path)
    if str(name).endswith(ENDING) or not os.path.isfile(path) or not os.path.getsize(path):
        return
    try:
        read_card(path)
    except ModelFileError:
        raise ModelFileError(
            f"'{name}' is not a model file, and save would overwrite it: give a name that ends "
            f"in {ENDING}, or remove the file first."
        ) from None


def read_model(path: str | os.PathLike, tasks: set[Any] | None = None) -> Any:
    """Read the object in a model file; the file contains no code.

    With `tasks` (ids) it has these tasks alone, and the numbers of others are not read.

    Raises
    ------
    ModelFileError
        If the file is truncated, damaged, of another program or of a newer format.
    FileNotFoundError
        If there is no such file.
    """
    with errors_name_file(path):
        with open_container(path) as (card, model, arrays):
            if tasks is None or card["format_version"] == 1:  # small ones, of other parts
                decoder = Decoder([array.read() for array in arrays])
            else:
                decoder = DecoderOfTasks(arrays, tasks)
            with errors_name_field(decoder.where):
                obj = decoder.decode_all(model)
        written, here = card["scikit_learn_version"], _version("scikit-learn")
    if decoder.has_sklearn and str(written).split(".")[:2] != here.split(".")[:2]:
        warn(
            f"'{os.fspath(path)}' holds a transformer saved with scikit-learn {written}, "
            f"and this is {here}: it may behave differently. Fit and save the model again, or "
            f"install scikit-learn {written}.",
            UserWarning,
        )
    return obj


def read_card(path: str | os.PathLike) -> dict[str, Any]:
    """Read the card of a model file: format, versions, date, class, and the entries of `save`.

    The arrays are not read, so the cost does not depend on the size of the model.
    """
    with errors_name_file(path):
        return read_container(path, card_only=True)[0]


def _version(package: str) -> str:
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "0+unknown"


def _created() -> str:
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    if epoch is None:
        return datetime.now(UTC).isoformat(timespec="seconds")
    try:
        return datetime.fromtimestamp(int(epoch), UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError) as error:
        raise ModelFileError(
            "The environment variable SOURCE_DATE_EPOCH must be a whole number of seconds. "
            f"Got {epoch!r} instead."
        ) from error


def _plain(value: Any, path: str) -> Any:
    """Return a value of the card as plain JSON."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str):
                raise ModelFileError(f"{path} has the key {key!r}; the keys must be strings.")
        return {key: _plain(v, f"{path}[{key!r}]") for key, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v, f"{path}[{i}]") for i, v in enumerate(value)]
    if isinstance(value, float):
        return value if math.isfinite(value) else repr(value)
    if value is None or isinstance(value, bool | int | str):
        return value
    raise ModelFileError(
        f"{path} is an object of class {type(value).__qualname__}; a card holds only dicts, lists, "
        "strings and numbers."
    )

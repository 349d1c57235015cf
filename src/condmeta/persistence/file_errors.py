"""Errors about a model file: the parts of this package give a reason, the caller names the file."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from condmeta.errors import DataError, ModelFileError
from condmeta.persistence.fields import InvalidFieldError

COPY_AGAIN = "Copy it again from its source, or save the model again."
WRITTEN_BY = "Models are written by `save` and by `condmeta fit`."


class InvalidFileError(Exception):
    """The reason why a file is invalid: the end of a sentence that starts with the file's name."""


def damaged(reason: str) -> InvalidFileError:
    """Return the error of a file that was written by condmeta and has changed since."""
    return InvalidFileError(f"is damaged: {reason}. {COPY_AGAIN}")


@contextmanager
def errors_name_field(where: Callable[[], str]) -> Iterator[None]:
    """Turn every error inside into one that names the field of the file where it arose."""
    try:
        yield
    except InvalidFieldError as error:
        raise damaged(f"its field {where()} {error.problem}") from error
    except (ModelFileError, OSError, MemoryError, ImportError, RecursionError):
        raise
    except DataError as error:
        raise damaged(f"its field {where()} makes no sense. {str(error).rstrip('.')}") from error
    except Exception as error:
        # JSON of the wrong structure raises a KeyError or TypeError somewhere in the decoder; for
        # the caller they all mean the same.
        reason = f"{type(error).__name__}: {error}"
        raise damaged(f"its field {where()} does not fit the others ({reason})") from error


@contextmanager
def errors_name_file(path: str | os.PathLike) -> Iterator[None]:
    """Turn every error inside into a `ModelFileError` that names the file.

    Errors of the operating system, a lack of memory and a missing package are not errors of the
    file; they are raised unchanged.
    """
    name = f"'{os.fspath(path)}'"
    try:
        yield
    except InvalidFileError as error:
        raise ModelFileError(f"{name} {error}") from error.__cause__
    except ModelFileError as error:
        raise ModelFileError(f"{name} cannot be opened: {error}") from error
    except RecursionError as error:
        raise ModelFileError(f"{name} is damaged: it is nested too deeply. {COPY_AGAIN}") from error
    except (OSError, MemoryError, ImportError):
        raise
    except Exception as error:
        # JSON of the wrong structure raises a KeyError or TypeError somewhere in the decoder; for
        # the caller they all mean the same.
        raise ModelFileError(
            f"{name} is damaged: its parts do not fit together "
            f"({type(error).__name__}: {error}). {COPY_AGAIN}"
        ) from error

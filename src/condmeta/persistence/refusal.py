"""How the parts of this package say no: a reason without a subject, named after the file later."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from condmeta.errors import ModelFileError

DAMAGED = "Copy it again from its source, or save the model again."
WRITTEN = "Models are written by `save` and by `condmeta fit`."


class RefusalError(Exception):
    """A reason why a file is not read, as the end of a sentence that starts with its name."""


@contextmanager
def naming(path: str | os.PathLike) -> Iterator[None]:
    """Turn whatever goes wrong inside into a `ModelFileError` that names the file.

    Errors of the operating system, a lack of memory and a missing package are not the file's fault
    and pass through.
    """
    name = f"'{os.fspath(path)}'"
    try:
        yield
    except RefusalError as error:
        raise ModelFileError(f"{name} {error}") from error.__cause__
    except ModelFileError as error:
        raise ModelFileError(f"{name} cannot be opened: {error}") from error
    except RecursionError as error:
        raise ModelFileError(f"{name} is damaged: it is nested too deeply. {DAMAGED}") from error
    except (OSError, MemoryError, ImportError):
        raise
    except Exception as error:
        # A wrong shape of JSON shows itself as a KeyError or TypeError somewhere in the decoder;
        # to the caller they all mean the same.
        raise ModelFileError(
            f"{name} is damaged: its parts do not fit together "
            f"({type(error).__name__}: {error}). {DAMAGED}"
        ) from error

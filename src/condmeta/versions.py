"""The installed versions, for bug reports and model cards."""

import platform
from importlib import metadata

from condmeta import __version__
from condmeta.engine import active_engine, instruction_set

PACKAGES = ("numpy", "scipy", "scikit-learn", "narwhals", "joblib", "pandas", "polars", "pyarrow")


def versions() -> dict[str, str]:
    """Return the versions of condmeta, its engine, Python and the packages it works with."""
    found = {
        "condmeta": __version__,
        "engine": active_engine(),
        "instruction set": instruction_set(),
        "python": platform.python_version(),
        "platform": platform.platform(),
    }
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found


def show_versions() -> None:
    """Print the versions of condmeta, its engine, Python and the packages it works with.

    Examples
    --------
    >>> import condmeta as cm
    >>> cm.show_versions()  # doctest: +ELLIPSIS
    condmeta         ...
    engine           ...
    """
    for name, version in versions().items():
        print(f"{name:<16} {version}")

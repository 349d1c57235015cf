"""Find the files that a user names: paths, patterns and folders."""

import glob
import os
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from condmeta.errors import DataError
from condmeta.tables.files import CsvOptions, arrow, no_file, read_batches
from condmeta.tables.files.source import Source
from condmeta.tasks.side_table import as_names

ENDINGS = ".parquet", ".pq", ".feather", ".arrow", ".csv", ".tsv", ".csv.gz", ".tsv.gz"


def is_pattern(path: Any) -> bool:
    """Return whether a path names several files: a pattern, a folder, or a list."""
    if not isinstance(path, str | os.PathLike):
        return True
    return os.path.isdir(path) or (glob.has_magic(os.fspath(path)) and not os.path.exists(path))


def find_files(given: str | os.PathLike | Sequence[Any]) -> list[str]:
    """Return the files of paths, patterns and folders, by name within each.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("b.csv", "a.csv", "notes.txt"):
    ...         pathlib.Path(folder, name).touch()
    ...     [pathlib.Path(path).name for path in find_files(folder)]
    ['a.csv', 'b.csv']
    """
    found: list[str] = []
    paths = list(given) if isinstance(given, list | tuple) else [given]
    if not all(isinstance(path, str | os.PathLike) for path in paths):
        raise DataError(f"Files are paths, patterns or folders, or a list of these. Got {given!r}.")
    for path in map(os.fspath, paths):
        if os.path.isdir(path):
            below = sorted(map(str, Path(path).rglob("*")))
            some = [p for p in below if p.lower().endswith(ENDINGS) and os.path.isfile(p)]
            if not some:
                known = ", ".join(ENDINGS[:5])
                raise DataError(f"The folder '{path}' has no table: files end in {known}.")
        elif os.path.exists(path):
            some = [path]
        elif glob.has_magic(path):
            some = [p for p in sorted(glob.glob(path, recursive=True)) if os.path.isfile(p)]
            if not some:
                raise DataError(f"No file matches '{path}'.")
        else:
            raise no_file(path)
        found += [path for path in some if path not in found]
    if not found:
        raise DataError("There are no files to read.")
    return found


def stage(
    paths: Sequence[str], folder: Path, text: Collection[str], csv: CsvOptions | None
) -> list[str]:
    """Return Parquet files with the rows of all files; others are converted into the folder.

    A file that was converted before is not read again.
    """
    staged = []
    for number, path in enumerate(paths):
        if Source(path).format == "parquet":
            staged.append(os.path.abspath(path))
            continue
        # Folders such as country=DE name a column.
        parts = [part for part in Path(path).parent.parts if "=" in part]
        target = folder.joinpath(*parts, f"{number:06d}.parquet")
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            _convert(path, target, text, csv)
        staged.append(os.path.abspath(target))
    return staged


def _convert(path: str, target: Path, text: Collection[str], csv: CsvOptions | None) -> None:
    part = target.with_suffix(".part")
    writer = None
    try:
        for table in read_batches(path, text=as_names(text), csv=csv):
            if writer is None:
                writer = arrow.parquet.ParquetWriter(part, table.schema)
            writer.write_table(table)
    finally:
        if writer is not None:
            writer.close()
    os.replace(part, target)

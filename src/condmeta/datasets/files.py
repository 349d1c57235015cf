"""Find a data file on disk, or download it into the user's cache; always check its content."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from condmeta.datasets.progress import ByteBar
from condmeta.errors import DataError

VARIABLE = "CONDMETA_DATA"
CHECKSUMS = {  # sha256
    "lenk_data.mat": "e6cc1029fa15ba8135dfca0f6a4bfa75599b4d43fe77224ce6b07bf9cdeb3e0b",
    "schoolData.mat": "39dc12efe846aa9dabd6ae794a73247fe6fbe00a91c7ce57a283398740794c41",
}
FOLDERS = (  # tried in turn
    "https://raw.githubusercontent.com/dGiulia/ConditionalMetaLearning/main/data/",
    "https://raw.githubusercontent.com/dstamos/Parameter-free-MTL/master/data/",
)
TIMEOUT = 30  # seconds without an answer


def find_file(name: str, path: Any = None) -> Path:
    """Return where a checked data file is, downloading it if it is nowhere on disk.

    Parameters
    ----------
    name : {"lenk_data.mat", "schoolData.mat"}
    path : str or Path, optional
        The file, or the folder that holds it under that name.
    """
    if path is not None:
        path = Path(path).expanduser()
        file = path / name if path.is_dir() else path
        if not file.is_file():
            raise FileNotFoundError(
                f"There is no file {file}. Give path= the file {name} or the folder that holds it."
            )
        return _checked(file, name)
    if os.environ.get(VARIABLE):
        file = Path(os.environ[VARIABLE]).expanduser() / name
        if file.is_file():
            return _checked(file, name)
    return _from_cache(name)


def _checked(file: Path, name: str) -> Path:
    """Return a user's own file if its content is the published one."""
    if not _is_intact(file, name):
        raise DataError(
            f"{file} is not the published {name}: its sha256 differs from {CHECKSUMS[name]}. "
            "It may be damaged or another version: replace it, or remove it to download it anew."
        )
    return file


def _is_intact(file: Path, name: str) -> bool:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest() == CHECKSUMS[name]


def _from_cache(name: str) -> Path:
    """Return the file in the user's cache, downloaded first if it is absent or damaged there."""
    try:
        import pooch
    except ImportError as error:
        raise ImportError(
            f"{name} is not on this machine, and downloading it needs pooch: "
            f'pip install "condmeta[data]". Or give the file with path=, or name its folder in '
            f"the environment variable {VARIABLE}."
        ) from error
    folder = _cache_folder(pooch)
    file = folder / name
    if file.is_file() and _is_intact(file, name):
        return file
    reasons, last = [], None
    for address in FOLDERS:
        try:
            _download(pooch, address + name, name, folder)
            return file
        except (OSError, ValueError) as error:  # no answer or a broken one; wrong content
            reasons.append(f"{address}{name} ({_reason(error)})")
            last = error
    raise ConnectionError(
        f"{name} could not be downloaded to {folder}. Tried {' and '.join(reasons)}. Check the "
        f"network; or give the file with path=, or name its folder in the environment variable "
        f"{VARIABLE}."
    ) from last


def _cache_folder(pooch: Any) -> Path:
    return Path(pooch.os_cache("condmeta"))


def _download(pooch: Any, address: str, name: str, folder: Path) -> None:
    """Download to a temporary file, check it, and only then move it to its place."""
    bar = ByteBar(name) if sys.stderr.isatty() else None
    downloader = pooch.HTTPDownloader(progressbar=bar or False, timeout=TIMEOUT)
    checksum = f"sha256:{CHECKSUMS[name]}"
    try:
        with _quiet(pooch.get_logger()):
            pooch.retrieve(address, checksum, fname=name, path=folder, downloader=downloader)
    finally:
        if bar is not None:
            bar.close()


@contextmanager
def _quiet(logger: Any) -> Iterator[None]:
    """Keep the library's own messages off the screen: the bar and our errors say it all."""
    level = logger.level
    logger.setLevel("ERROR")
    try:
        yield
    finally:
        logger.setLevel(level)


def _reason(error: Exception) -> str:
    """Say in a few words why a download failed."""
    response = getattr(error, "response", None)
    if response is not None:
        response.close()  # its body was never read: the connection is still open
        return f"answer {response.status_code}"
    if not isinstance(error, OSError):
        return "what came is not the published file"
    return str(error) if error.errno is not None else type(error).__name__

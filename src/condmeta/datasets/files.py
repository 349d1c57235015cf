"""Find a data file on disk, or download it into the user's cache; check it, scale its rows."""

import hashlib
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

from condmeta.errors import DataError
from condmeta.tasks.messages import bad_parameter

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
WIDTH = 30  # of the progress bar


def find_file(name: str, path: Any = None) -> Path:
    """Return the path of a checked data file; download it if it is not on disk.

    Parameters
    ----------
    name : {"lenk_data.mat", "schoolData.mat"}
    path : str or Path, optional
        The file, or the folder that holds a file of that name.
    """
    if path is not None:
        path = Path(path).expanduser()
        file = path / name if path.is_dir() else path
        if not file.is_file():
            raise FileNotFoundError(
                f"There is no file {file}. Give path= the file {name} or the folder that holds it."
            )
        return _checked(file, name)
    folder = os.environ.get(VARIABLE)
    file = Path(folder).expanduser() / name if folder else None
    return _checked(file, name) if file and file.is_file() else _from_cache(name)


def scale_rows(X: np.ndarray, scale: str, owner: str) -> np.ndarray:
    """Return X (N, d) unchanged ("none") or with rows of unit norm ("rows"; zero rows stay)."""
    if scale == "none":
        return X
    if scale == "rows":
        norms = np.linalg.norm(X, axis=1, keepdims=True)
        return X / np.where(norms > 0, norms, 1.0)
    raise bad_parameter(f"scale of {owner}", "'none' or 'rows'", scale)


def _checked(file: Path, name: str) -> Path:
    """Return a user's own file if it is the published one; raise a DataError otherwise."""
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
    """Return the file in the user's cache; download it first if it is absent or damaged."""
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
    logger = pooch.get_logger()
    level = logger.level
    logger.setLevel("ERROR")  # hide pooch's own messages: the bar and our errors are enough
    try:
        pooch.retrieve(address, checksum, fname=name, path=folder, downloader=downloader)
    finally:
        logger.setLevel(level)
        if bar is not None:
            bar.close()


def _reason(error: Exception) -> str:
    """Return in a few words why a download failed."""
    response = getattr(error, "response", None)
    if response is not None:
        response.close()  # its body was never read: the connection is still open
        return f"answer {response.status_code}"
    if not isinstance(error, OSError):
        return "the downloaded file is not the published one"
    return str(error) if error.errno is not None else type(error).__name__


class ByteBar:
    """Draw on standard error how much of a file has been downloaded.

    pooch sets `total`, calls `update` for each chunk, then `reset`, `update` and `close`.

    Examples
    --------
    >>> bar = ByteBar("data.mat")
    >>> bar.total = 4_000_000
    >>> bar.count = 1_000_000
    >>> bar.line()
    'data.mat  [#######.......................]   1.0 of 4.0 MB'
    """

    def __init__(self, name: str):
        self.name, self.total, self.count, self.drawn = name, 0, 0, False

    def line(self) -> str:
        """Return the bar as text, or only the megabytes if the total is unknown."""
        if not self.total:
            return f"{self.name}  {self.count / 1e6:5.1f} MB"
        done = min(self.count, self.total)
        filled = WIDTH * done // self.total
        bar = "#" * filled + "." * (WIDTH - filled)
        return f"{self.name}  [{bar}] {done / 1e6:5.1f} of {self.total / 1e6:.1f} MB"

    def update(self, n: int) -> None:
        """Add n bytes and redraw."""
        self.count += n
        self.drawn = True
        sys.stderr.write("\r" + self.line())
        sys.stderr.flush()

    def reset(self) -> None:
        """Set the count to zero."""
        self.count = 0

    def close(self) -> None:
        """End the line if one was drawn."""
        if self.drawn:
            sys.stderr.write("\n")
            sys.stderr.flush()
        self.drawn = False

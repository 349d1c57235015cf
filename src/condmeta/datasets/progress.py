"""A progress bar for one download, on standard error."""

from __future__ import annotations

import sys

WIDTH = 30


class ByteBar:
    """Draw how much of a file has come.

    pooch sets `total`, calls `update` for each chunk, and in the end `reset`, `update`, `close`.

    Examples
    --------
    >>> bar = ByteBar("data.mat")
    >>> bar.total = 4_000_000
    >>> bar.count = 1_000_000
    >>> bar.line()
    'data.mat  [#######.......................]   1.0 of 4.0 MB'
    """

    def __init__(self, name: str):
        self.name = name
        self.total = 0
        self.count = 0
        self.drawn = False

    def line(self) -> str:
        """Return the bar as text; without a known total, the bytes alone."""
        done = min(self.count, self.total) if self.total else self.count
        if not self.total:
            return f"{self.name}  {done / 1e6:5.1f} MB"
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
        """Go back to nothing."""
        self.count = 0

    def close(self) -> None:
        """End the line, if there is one."""
        if self.drawn:
            sys.stderr.write("\n")
            sys.stderr.flush()
        self.drawn = False

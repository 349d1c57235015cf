"""Warnings that point to the line of the user, however deep in condmeta they are raised."""

import os
import sys
import warnings

HERE = os.path.dirname(__file__) + os.sep


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line outside condmeta that has called it."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(HERE):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)

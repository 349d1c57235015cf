"""Warnings that point to the line of the user, however deep in condmeta they are raised."""

import os
import sys
import warnings

HERE = os.path.dirname(__file__) + os.sep


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line that has called condmeta.

    Other libraries, such as contextlib and joblib, may stand between two functions of condmeta: the
    line is the one that called the outermost of these.
    """
    frame, level, outermost = sys._getframe(), 1, 1
    while frame is not None:
        if frame.f_code.co_filename.startswith(HERE):
            outermost = level
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=outermost + 1)

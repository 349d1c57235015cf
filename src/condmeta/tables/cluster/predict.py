"""Predict the rows of a Dask DataFrame: each worker loads the model once."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

import condmeta


def predict_lazily(model: Any, frame: Any, side_info: Any, folder: Any = None) -> Any:
    """Return the predictions of a Dask DataFrame as a lazy Dask series (see `TableModel.predict`).

    The model is written to a folder that workers read from; it is removed when Python ends.
    """
    import pandas as pd

    made = Path(tempfile.mkdtemp(prefix="condmeta-", dir=folder))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    path = made / "model.condmeta"
    model.save(path, resume=False)
    classes = model.schema_.classes
    dtype = np.dtype(float) if classes is None else np.array(classes).dtype
    meta = pd.Series([], dtype=dtype, name=model.target)
    return frame.map_partitions(predict_partition, str(path), side_info, dtype, meta=meta)


def predict_partition(frame: Any, path: str, side_info: Any, dtype: np.dtype) -> Any:
    """Return the predictions of one partition as a pandas series."""
    import pandas as pd

    model = load_once(path, os.stat(path).st_mtime_ns)
    found = model.predict(frame, side_info) if len(frame) else []
    return pd.Series(found, index=frame.index, name=model.target, dtype=dtype)


@lru_cache(maxsize=2)
def load_once(path: str, _: int) -> Any:
    """Return the model of a file; `_` tells versions of the file apart."""
    return condmeta.load(path)

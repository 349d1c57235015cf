"""Model files: safe to open, checked before they are read, replaced all at once.

A model file is an uncompressed zip of `meta.json` and `.npy` arrays. Nothing in it can run, and
reading it allocates no more than a small multiple of its size. This package knows no estimator:
classes that may be stored enter themselves with `register`.

Examples
--------
>>> import os, tempfile
>>> from condmeta.persistence import read_card, read_model, write_model
>>> path = os.path.join(tempfile.mkdtemp(), "weights.condmeta")
>>> write_model(path, {"b": [1.5, 2.0]}, card={"engine": "numpy"})
>>> read_model(path), read_card(path)["engine"]
({'b': [1.5, 2.0]}, 'numpy')
"""

from condmeta.persistence.decoder import decode
from condmeta.persistence.encoder import encode
from condmeta.persistence.model_file import read_card, read_model, write_model
from condmeta.persistence.registry import register
from condmeta.persistence.transformers import estimator_state, restore_estimator

__all__ = [
    "decode",
    "encode",
    "estimator_state",
    "read_card",
    "read_model",
    "register",
    "restore_estimator",
    "write_model",
]

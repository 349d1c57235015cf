"""Model files: safe to open, checked before they are read, replaced all at once.

A model file is an uncompressed zip of `meta.json` and `.npy` arrays. It contains no code, and
reading it allocates at most a small multiple of its size. This package knows no estimator: a class
that may be stored calls `register` where it is defined.

Examples
--------
>>> import os, tempfile
>>> from condmeta.persistence import read_card, read_model, write_model
>>> path = os.path.join(tempfile.mkdtemp(), "weights.condmeta")
>>> write_model(path, {"b": [1.5, 2.0]}, card={"engine": "numpy"})
>>> read_model(path), read_card(path)["engine"]
({'b': [1.5, 2.0]}, 'numpy')
"""

from importlib import import_module

_HOME = {  # loaded when first used: modules that only register a class need nothing else
    "decode": "decoder",
    "encode": "encoder",
    "estimator_state": "transformers",
    "read_card": "model_file",
    "read_model": "model_file",
    "register": "registry",
    "restore_estimator": "transformers",
    "write_model": "model_file",
}
__all__ = list(_HOME)


def __getattr__(name: str):
    if name not in _HOME:
        raise AttributeError(f"module 'condmeta.persistence' has no attribute {name!r}")
    return getattr(import_module(f"condmeta.persistence.{_HOME[name]}"), name)

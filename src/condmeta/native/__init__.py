"""The compiled core: C++ twins of the functions that `condmeta.engine.twin` marks.

It holds one extension module, `_core`, built at installation where there is a C++ compiler. Nothing
imports it directly: `condmeta.engine` does, and falls back on NumPy where it is missing.
"""

"""The compiled core: C++ twins of the functions that `condmeta.engine.twin` marks.

It holds one extension module, `_core`, built at installation if there is a C++ compiler. Only
`condmeta.engine` imports it, and uses NumPy if it is missing.
"""

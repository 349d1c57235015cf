"""Put the compiled core that CONDMETA_CORE names in place of the installed one.

A plugin of pytest (`-p sanitized_core`), or a plain import before condmeta runs.
"""

import importlib.util
import os
import sys

NAME = "condmeta.native._core"

if path := os.environ.get("CONDMETA_CORE"):
    spec = importlib.util.spec_from_file_location(NAME, path)
    core = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(core)
    sys.modules[NAME] = core
    import condmeta.native

    condmeta.native._core = core

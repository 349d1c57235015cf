"""Test with the lowest versions of all packages that pyproject.toml allows.

    make floors                                 # all tests
    python tools/floors.py tests/unit/inner     # some of them

It makes an environment in build/floors, installs every requirement "name>=x" of the package, of
its extras and of the tests as "name==x", then condmeta itself, and runs the tests. BESIDE bounds
what these packages bring along.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HOME = ROOT / "build" / "floors"
GROUPS = ["test", "public-data"]
BESIDE = ["pyparsing<3.3"]  # what matplotlib 3.9 calls is deprecated there, and warnings are errors
# polars 1.17 warns of every fork once it is imported; our children do not call it
SETTINGS = {"CONDMETA_FLOORS": "1", "POLARS_ALLOW_FORKING_THREAD": "1"}
FLOOR = re.compile(r"([A-Za-z0-9_.-]+(?:\[[a-z,]+\])?)>=([0-9][0-9.]*)$")


def requirements() -> list[str]:
    """Return the requirements of condmeta, its extras and its tests, each at its floor."""
    content = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project, groups = content["project"], content["dependency-groups"]
    listed = [*project["dependencies"]]
    for extra in project["optional-dependencies"].values():
        listed += extra
    for name in GROUPS:
        listed += [entry for entry in groups[name] if isinstance(entry, str)]
    floors = sorted({at_floor(entry) for entry in listed if not entry.startswith("condmeta")})
    return floors + BESIDE


def at_floor(requirement: str) -> str:
    """Return "name==x" for "name>=x"; a requirement without a floor as it is."""
    found = FLOOR.match(requirement.replace(" ", ""))
    return f"{found[1]}=={found[2]}" if found else requirement


def main() -> int:
    """Make the environment, run the tests, and return their exit code."""
    python = HOME / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", HOME], check=True)
    pip = [python, "-m", "pip", "install", "--quiet"]
    wanted = requirements()
    print("Lowest versions:", ", ".join(wanted), flush=True)
    subprocess.run([*pip, *wanted], check=True)
    subprocess.run([*pip, "--no-deps", "--force-reinstall", str(ROOT)], check=True)
    show = "import condmeta; condmeta.show_versions()"
    subprocess.run([python, "-c", show], check=True, cwd=HOME)
    # The installed package, not the source tree: the tests do not import from src.
    tests = sys.argv[1:] or ["tests"]
    command = [python, "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", *tests]
    return subprocess.run(command, cwd=ROOT, env=os.environ | SETTINGS).returncode


if __name__ == "__main__":
    sys.exit(main())

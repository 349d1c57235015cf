"""`condmeta.load` knows every class that a file may hold, in a process that used nothing else."""

import subprocess
import sys
from pathlib import Path

import pytest

MODELS = Path(__file__).parents[1] / "data" / "models"

REGISTERED_LATER = """
import pkgutil
import condmeta
from condmeta.persistence import registry
condmeta.load
known = set(registry._BY_NAME)
for module in pkgutil.walk_packages(condmeta.__path__, "condmeta."):
    if not module.name.endswith("__main__"):
        __import__(module.name)
print(*sorted(set(registry._BY_NAME) - known))
"""


def output_of(program: str, *arguments: str) -> str:
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_load_registers_every_class():
    assert output_of(REGISTERED_LATER) == ""


@pytest.mark.parametrize("path", sorted(MODELS.glob("*.condmeta")), ids=lambda path: path.stem)
def test_a_fresh_process_opens_the_file(path):
    name = output_of(
        "import sys, condmeta; print(type(condmeta.load(sys.argv[1])).__name__)", str(path)
    )
    assert name

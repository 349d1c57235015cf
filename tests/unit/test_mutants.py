"""The table of mutants is up to date: every text is in its file once, and every test exists."""

import importlib.util
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "tools" / "mutants.py"


def load():
    spec = importlib.util.spec_from_file_location("mutants", SCRIPT)
    sys.modules["mutants"] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_table_is_up_to_date():
    """If a formula was rewritten, write its mutants in tools/mutants.toml anew."""
    mutants = load()
    table = mutants.read_table()
    assert mutants.faults_of(table) == []
    assert len({(m.path, m.old, m.new) for m in table}) == len(table) >= 150


def test_a_text_that_is_gone_is_a_fault():
    mutants = load()
    gone = mutants.Mutant("inner/online.py", "this text is not there", "x", ("tests/no.py",))
    twice = gone._replace(old="np.", tests=())
    found = mutants.faults_of([gone, twice])
    assert [fault.split(":")[1] for fault in found[:2]] == [
        " it is not there",
        " there is no test tests/no.py",
    ]
    assert "it is not one" in found[2]

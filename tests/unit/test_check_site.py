"""`tools/check_site.py` finds what it should in a small site, and nothing else."""

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "tools" / "check_site.py"


@pytest.fixture
def faults():
    spec = importlib.util.spec_from_file_location("check_site", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.faults


def write(folder, **pages):
    for name, content in pages.items():
        (folder / f"{name}.html").write_text(content, encoding="utf-8")
    return folder


def test_a_sound_site_has_no_fault(tmp_path, faults):
    one = (
        '<a href="two.html#a%20b">two</a> <a href="https://example.org/">away</a> <img src="p.svg">'
    )
    (tmp_path / "p.svg").write_text("<svg/>", encoding="utf-8")
    two = '<h1 id="a b">two</h1> <a href="#a%20b">here</a>'
    assert faults(write(tmp_path, one=one, two=two)) == []


@pytest.mark.parametrize(
    ("tag", "sentence"),
    [
        ('<a href="gone.html">x</a>', "one.html leads to gone.html, which is not there"),
        ('<a href="#gone">x</a>', "one.html leads to #gone, which has no such place"),
        ('<img src="gone.png">', "one.html leads to gone.png, which is not there"),
        ('<script src="https://cdn.test/x.js"></script>', "one.html loads https://cdn.test/x.js"),
        ('<link href="//cdn.test/x.css">', "one.html loads //cdn.test/x.css"),
    ],
)
def test_each_fault_is_named(tmp_path, faults, tag, sentence):
    assert faults(write(tmp_path, one=tag)) == [sentence]

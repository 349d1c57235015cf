"""Ids, columns and titles that could break a page: shown as they are, and nothing of them runs."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from headless import check_quiet, look, needs_browser

import condmeta as cm

pytestmark = needs_browser
HOSTILE = [
    "<img src=x onerror=attacked=1>",
    "</script><script>attacked=1</script>",
    "</style><style>body{display:none}</style>",
    "\"' onmouseover='attacked=1' x=\"",
    "`${attacked=1}`",
    "{{ 7 * 7 }} {% raw %}",
    "javascript:attacked=1",
    "]]><!-- -->",
    "\u202egnp.exe",  # letters from right to left
    "two\nlines\r\nand a\ttab",
    "zero\u200bwidth \ufeff",
    '=HYPERLINK("http://x")',
    "&lt;b&gt; &amp;",
    "\\u003cscript\\u003e",
]
USE = """
  const rows = [...page.querySelectorAll("#cards tbody tr")];
  const ids = rows.map((row) => row.cells[0].dataset.value);
  const shown = rows.map((row) => {
    row.querySelector("button").click();
    return page.querySelector("#card h3").textContent;
  });
  return {
    ids, shown, attacked: window.attacked ?? null,
    foreign: page.querySelectorAll("img, iframe, object, embed, form, base").length,
    scripts: page.querySelectorAll("script").length, styles: page.querySelectorAll("style").length,
    policy: page.querySelector("meta[http-equiv]").content,
    handlers: [...page.querySelectorAll("*")].flatMap((e) => [...e.attributes])
      .filter((a) => a.name.startsWith("on")).length,
    coefficients: [...page.querySelectorAll("#card table.compact td:first-child")]
      .map((e) => e.textContent),
    saved: decodeURIComponent(page.querySelector("#save").href),
  };
"""


@pytest.fixture(scope="module")
def looked(tmp_path_factory):
    rng, T, n = np.random.default_rng(0), len(HOSTILE), 5
    task = np.repeat(np.arange(T), n)
    X = pd.DataFrame(rng.normal(size=(T * n, 2)), columns=HOSTILE[:2])
    size = rng.normal(size=T)
    y = X.to_numpy()[:, 0] * (1 + size[task]) + 0.1 * rng.normal(size=T * n)
    levels = [HOSTILE[t % 2] for t in range(T)]
    side = cm.TaskTable({HOSTILE[0]: size, HOSTILE[8]: levels}, ids=HOSTILE)
    found = cm.compare(
        X, y, task=[HOSTILE[t] for t in task], side_info=side, base=None, shots=(0, 2)
    )
    folder = tmp_path_factory.mktemp("hostile")
    found.to_html(folder / "report.html", title=HOSTILE[0], command=HOSTILE[1])
    return look(folder, USE, tmp_path_factory.mktemp("profile"))


def test_the_console_is_quiet_and_nothing_runs(looked):
    check_quiet(looked)
    found = looked[0]["1280"]
    assert found["attacked"] is None
    assert found["foreign"] == found["handlers"] == 0
    assert found["scripts"] == 3  # the data, and two of ours
    assert found["styles"] == 1


def test_names_are_shown_as_they_are(looked):
    found = looked[0]["1280"]
    assert sorted(found["ids"]) == sorted(HOSTILE)  # the worst task is first
    assert found["shown"] == [f"task {name}" for name in found["ids"]]
    assert found["coefficients"][:2] == HOSTILE[:2]
    quoted = [name.replace('"', '""') for name in HOSTILE]
    assert all(f'"{name}",5,0,' in found["saved"] for name in quoted)


def test_the_policy_allows_only_what_the_page_brings(looked):
    policy = looked[0]["1280"]["policy"]
    assert policy.startswith("default-src 'none'; style-src-elem 'sha256-")
    assert "script-src 'sha256-" in policy
    assert "unsafe-inline" not in policy.replace("style-src-attr 'unsafe-inline'", "")
    assert "unsafe-eval" not in policy

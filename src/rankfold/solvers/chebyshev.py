"""How to go on with a series of which the first terms are known."""

from __future__ import annotations

SMALLEST_RHO = 1e-3
"""Below it the terms that are not known do not matter."""


def term_weights(rho: float) -> tuple[float, float, float]:
    """Return weights for the first three terms of ``e = (1 + J + J^2 + ...) x``.

    With weights p, ``e`` is missed by ``q(J) e`` where ``q(z) = 1 - (1 - z) p(z)``. Of all
    polynomials of its degree with ``q(1) = 1`` that of Chebyshev is the smallest on an interval:
    ``q(z) = T3((z - m) / h) / T3((1 - m) / h)`` on ``m - h <= z <= m + h``. The interval ends at
    rho and begins at ``-rho / 2``, since graphs of neighbours are far from having two sides;
    for a large rho it begins earlier, so that |q| is at most one even if they had.

    Parameters
    ----------
    rho : float
        About the largest eigenvalue of J, less than one.

    Examples
    --------
    >>> [round(weight, 3) for weight in term_weights(0.5)]
    [0.981, 1.082, 1.731]
    >>> term_weights(0.0)
    (1.0, 1.0, 1.0)
    """
    if rho < SMALLEST_RHO:
        return 1.0, 1.0, 1.0
    low = max(rho / 2, 2 * rho - 1)
    m, h = (rho - low) / 2, (rho + low) / 2
    # T3(u) = 4 u^3 - 3 u with u = (z - m) / h, by powers of z.
    powers = (
        3 * m / h - 4 * (m / h) ** 3,
        12 * m**2 / h**3 - 3 / h,
        -12 * m / h**3,
        4 / h**3,
    )
    q = [power / sum(powers) for power in powers]
    return 1 - q[0], 1 - q[0] - q[1], q[3]

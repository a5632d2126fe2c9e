"""Weights of known terms: what is missed is as small as a polynomial can make it."""

import numpy as np
import pytest

from rankfold.solvers.chebyshev import term_weights


def missed(rho, z):
    """Return ``1 - (1 - z) p(z)``."""
    p = term_weights(rho)
    return 1 - (1 - z) * (p[0] + p[1] * z + p[2] * z**2)


@pytest.mark.parametrize("rho", [0.01, 0.3, 0.65, 0.85, 0.95, 0.999])
def test_what_is_missed_is_small_and_even_on_the_interval(rho):
    low = -max(rho / 2, 2 * rho - 1)
    inside = missed(rho, np.linspace(low, rho, 10_001))
    largest = np.abs(inside).max()
    # Chebyshev's polynomials reach their largest value, with either sign, four times.
    signs = np.sign(inside[np.abs(inside) > largest * (1 - 1e-4)])
    assert np.count_nonzero(np.diff(signs)) == 3
    np.testing.assert_allclose([missed(rho, low), missed(rho, rho)], [-largest, largest])
    terms_alone = rho**3
    assert largest < terms_alone


@pytest.mark.parametrize("rho", [0.01, 0.3, 0.65, 0.85, 0.95, 0.999])
def test_nothing_is_made_larger(rho):
    everywhere = missed(rho, np.linspace(-rho, 1, 10_001))
    assert np.abs(everywhere).max() <= 1 + 1e-12


def test_without_edges_nothing_is_added():
    assert term_weights(0.0) == (1.0, 1.0, 1.0)

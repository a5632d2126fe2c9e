"""One graph for all queries, written densely, line by line, straight from its equations.

Exact solves, N x N arrays and loops; like `reference`, it shares no code with the package.
"""

import numpy as np
from reference import closed_form, f_step, laplacian, nearest, reach, simplex_projection

ATTEMPTS = ((1, 3, 0.8, np.inf), (2, 1, 1.1, 0.55))
"""Neighbours relative to the plain graph, most rounds, least reach."""


def scores_of_all(S, smoothness):
    """F: column q holds the scores of all points for the query q."""
    n = len(S)
    F = np.zeros((n, n))
    for q in range(n):
        F[:, q] = f_step(S, smoothness, [q], np.ones(1))
    return F


def profiles(S, smoothness):
    """Rows of F, each scaled to length one."""
    F = scores_of_all(S, smoothness)
    return np.array([row / np.sqrt((row**2).sum()) for row in F])


def lifts(F):
    """||F_i - F_j||^2 of all pairs."""
    n = len(F)
    found = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            found[i, j] = ((F[i] - F[j]) ** 2).sum()
    return found


def median_reach(S, smoothness, sample):
    """Effective number of points that a query reaches, the median over some."""
    return np.median([reach(f_step(S, smoothness, [q], np.ones(1))) for q in sample])


class Collective:
    """Learning from squared distances d of all pairs, with lists of so many candidates."""

    def __init__(self, d, k, smoothness, width=42, weight=10.0, profile_smoothness=1.0):
        n = len(d)
        self.k, self.smoothness, self.weight = k, smoothness, weight
        self.profile_smoothness = profile_smoothness
        self.width = min(width, n - 1)
        self.candidates = [
            nearest(d[i], [j for j in range(n) if j != i])[: self.width] for i in range(n)
        ]
        self.unit = np.mean([closed_form(d[i], self.candidates[i], k)[2] for i in range(n)]) or 1.0
        self.d = d / self.unit
        self.plain = self.s_step(self.d, k)

    def s_step(self, learned, k):
        """The closed form over the candidates."""
        rows = zip(learned, self.candidates, strict=True)
        return np.array([closed_form(row, allowed, k)[0] for row, allowed in rows])

    def lifted(self, S):
        """What one round adds to the lifts."""
        return lifts(profiles(S, self.profile_smoothness))

    def learned(self, total, n_rounds):
        """Learned distances after some rounds with this sum of lifts."""
        return self.d + self.weight * total / n_rounds

    def run(self, attempts=ATTEMPTS):
        """Neighbours, learned distances or None, rounds (k, number, reach, share, kept)."""
        everyone, rounds = range(len(self.d)), []
        expected = median_reach(self.plain, self.smoothness, everyone)
        for factor, most_rounds, least_reach, most_share in attempts:
            k = factor * self.k
            if self.width < 2 * (k + 1):
                continue
            S, total, kept = self.plain, np.zeros_like(self.d), None
            as_many = median_reach(self.s_step(self.d, k), self.smoothness, everyone)
            for number in range(1, most_rounds + 1):
                total = total + self.lifted(S)
                learned = self.learned(total, number)
                S = self.s_step(learned, k)
                reached = median_reach(S, self.smoothness, everyone)
                relative = reached / expected
                good = relative >= least_reach and reached <= most_share * as_many
                rounds.append((k, number, relative, reached / as_many, good))
                if not good:
                    break
                kept = learned
            if kept is not None:
                return k, kept, rounds
        return self.k, None, rounds


class Joint:
    """The objective of one graph for all queries, whose half-steps never increase it.

    J(S, F) = sum_ij (d_ij s_ij + gamma_i s_ij^2)
              + w sum_q (2 lambda f_q' L_S f_q + sum_{i != q} f_qi^2)   with f_qq = 1,

    over rows of S in the simplex. f' L_S f is half of sum_ij s_ij (f_i - f_j)^2, so for fixed F
    row i of S is the projection in d_ij + w lambda ||F_i - F_j||^2. The gamma_i stay those of
    the first graph, and every other point is a candidate.
    """

    def __init__(self, d, k, smoothness, weight):
        n = len(d)
        self.d, self.smoothness, self.weight = d, smoothness, weight
        self.others = [[j for j in range(n) if j != i] for i in range(n)]
        first = [closed_form(d[i], self.others[i], k) for i in range(n)]
        self.first = np.array([s for s, _, _ in first])
        self.gamma = [gamma for _, gamma, _ in first]

    def value(self, S, F):
        """J(S, F)."""
        n, total = len(S), 0.0
        for i in range(n):
            for j in range(n):
                total += self.d[i, j] * S[i, j] + self.gamma[i] * S[i, j] ** 2
        return total + self.weight * self.queries(S, F)

    def queries(self, S, F):
        """The part of all queries."""
        L, total = laplacian(S), 0.0
        for q in range(len(S)):
            f = F[:, q]
            total += 2 * self.smoothness * f @ L @ f
            total += sum(f[i] ** 2 for i in range(len(S)) if i != q)
        return total

    def f_step(self, S):
        """The best F for S."""
        return scores_of_all(S, self.smoothness)

    def s_step(self, F):
        """The best S for F."""
        lifted = self.d + self.weight * self.smoothness * lifts(F)
        return np.array([
            simplex_projection(lifted[i], self.others[i], self.gamma[i]) for i in range(len(F))
        ])  # fmt: skip

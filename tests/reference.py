"""Every method written densely, line by line, straight from its equations.

Slow and plain on purpose: loops where the equations have indices, N x N arrays, no shared
code with the package. All fast paths must agree with this file.
"""

import numpy as np


def sq_distances(X, metric="euclidean"):
    """All squared distances, one pair at a time."""
    X = np.asarray(X, dtype=float)
    if metric == "precomputed":
        return X**2
    if metric == "precomputed_sq":
        return X.copy()
    if metric == "cosine":
        X = np.array([x / np.sqrt((x**2).sum()) for x in X])
    n = len(X)
    d = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            d[i, j] = ((X[i] - X[j]) ** 2).sum()
    return d


def nearest(d_row, allowed):
    """Allowed indices in ascending order of distance, ties by index."""
    return sorted(allowed, key=lambda j: (d_row[j], j))


def closed_form(d_row, allowed, k):
    """Eq. (14) with gamma_i from Eq. (18): exactly k neighbours."""
    order = nearest(d_row, allowed)
    s = np.zeros(len(d_row))
    if len(order) == 1:
        s[order[0]] = 1.0
        return s, 0.0, d_row[order[0]]
    k = min(k, len(order) - 1)
    d = [d_row[j] for j in order]
    denominator = sum(d[k] - d[j] for j in range(k))
    for j in range(k):
        s[order[j]] = (d[k] - d[j]) / denominator if denominator > 0 else 1.0 / k
    return s, denominator / 2, d[k]


def simplex_projection(d_row, allowed, gamma):
    """Eq. (12): the point of the simplex nearest to -d / (2 gamma)."""
    order = nearest(d_row, allowed)
    v = [-d_row[j] / (2 * gamma) for j in order]
    for m in range(len(v), 0, -1):
        eta = (1 - sum(v[:m])) / m
        if v[m - 1] + eta > 0:
            break
    s = np.zeros(len(d_row))
    for j in range(m):
        s[order[j]] = v[j] + eta
    return s


def laplacian(S):
    """L_S = D_S - (S' + S) / 2."""
    W = (S + S.T) / 2
    return np.diag(W.sum(axis=1)) - W


def f_step(S, smoothness, points, seeds):
    """Eq. (7) with U infinite at the query: f = y there, (2 lambda L + I) f = 0 elsewhere."""
    n = len(S)
    A = 2 * smoothness * laplacian(S) + np.eye(n)
    rest = [i for i in range(n) if i not in set(points)]
    f = np.zeros(n)
    f[points] = seeds
    if rest:
        f[rest] = np.linalg.solve(A[np.ix_(rest, rest)], -A[np.ix_(rest, points)] @ seeds)
    return f


def objective(d, S, f, points, gamma, smoothness):
    """Eq. (5); the last term is zero at the query, where f = y."""
    n = len(S)
    total = 0.0
    for i in range(n):
        for j in range(n):
            if S[i, j] > 0:
                total += d[i, j] * S[i, j] + gamma * S[i, j] ** 2
    total += 2 * smoothness * f @ laplacian(S) @ f
    total += sum(f[i] ** 2 for i in range(n) if i not in set(points))
    return total


class RAN:
    """Algorithm 1 on n points of a database followed by m unseen ones.

    Nobody has an unseen point, or itself, as a neighbour.
    """

    def __init__(self, d, n_points, k, smoothness, gamma="own", candidates="all", natural=False):
        self.n_points, self.k, self.smoothness = n_points, k, smoothness
        self.gamma, self.candidates = gamma, candidates
        self.allowed = [[j for j in range(n_points) if j != i] for i in range(len(d))]
        first = [closed_form(d[i], self.allowed[i], k) for i in range(len(d))]
        self.unit = 1.0
        if natural:
            self.unit = np.mean([end for _, _, end in first[:n_points]]) / smoothness or 1.0
        self.d = d / self.unit
        self.shared_gamma = np.mean([own for _, own, _ in first[:n_points]]) / self.unit
        self.first_graph = np.array([s for s, _, _ in first])

    def s_step(self, f):
        S = np.zeros_like(self.d)
        for i in range(len(self.d)):
            lifted = self.d[i] + self.smoothness * (f[i] - f) ** 2
            allowed = self.allowed[i]
            if self.candidates == "local":
                kept = self.k + (self.gamma == "own")
                allowed = nearest(self.d[i], allowed)[:kept]
            if self.gamma == "own":
                S[i] = closed_form(lifted, allowed, self.k)[0]
            else:
                S[i] = simplex_projection(lifted, allowed, self.shared_gamma)
        return S

    def run(self, points, seeds, n_alternations):
        """Scores after every alternation, and the objective after every half-step."""
        seeds = np.asarray(seeds, dtype=float)
        f = np.zeros(len(self.d))
        f[points] = seeds
        S, scores, values = self.first_graph, [], []
        for t in range(n_alternations):
            if t:
                S = self.s_step(f)
            values.append(objective(self.d, S, f, points, self.shared_gamma, self.smoothness))
            f = f_step(S, self.smoothness, points, seeds)
            values.append(objective(self.d, S, f, points, self.shared_gamma, self.smoothness))
            scores.append(f)
        return scores, values


def plain_order(d_rows, weights, left_out):
    """Points in the order of their weighted mean squared distance to the query."""
    mean = np.average(d_rows, axis=0, weights=weights)
    return nearest(mean, [j for j in range(len(mean)) if j not in set(left_out)])


def intrinsic_dimension(d, m=20):
    """Median over points of (m - 1) / sum_j log(T_m / T_j)."""
    values = []
    for i in range(len(d)):
        T = np.sqrt(sorted(np.delete(d[i], i))[:m])
        T = T[T > 0]
        total = sum(np.log(T[-1] / t) for t in T)
        if total > 0:
            values.append((len(T) - 1) / total)
    return np.median(values)

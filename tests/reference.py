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
    """Points in the order of their weighted mean squared distance to positive examples."""
    mean = np.average(d_rows, axis=0, weights=[max(weight, 0) for weight in weights])
    return nearest(mean, [j for j in range(len(mean)) if j not in set(left_out)])


def plain_scores(d_rows, weights):
    """Minus the mean squared distance to positive examples, plus that to negative ones."""
    positive = [(d, w) for d, w in zip(d_rows, weights, strict=True) if w > 0]
    negative = [(d, -w) for d, w in zip(d_rows, weights, strict=True) if w < 0]
    scores = -sum(w * d for d, w in positive) / sum(w for _, w in positive)
    if negative:
        scores = scores + sum(w * d for d, w in negative) / len(negative)
    return scores


def reach(f):
    """Effective number of points that share the positive score."""
    up = [max(value, 0.0) for value in f]
    return sum(up) ** 2 / sum(value**2 for value in up)


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


def adaptive_graph(d, n, k):
    """W = (S + S') / 2 among the first n points; rows of the others, divided by d / d_{k+1}."""
    S = np.zeros((n, n))
    for i in range(n):
        allowed = [j for j in range(n) if j != i]
        if allowed:
            S[i] = closed_form(d[i, :n], allowed, k)[0]
    rows = np.zeros((len(d) - n, n))
    for i in range(n, len(d)):
        s, _, end = closed_form(d[i, :n], range(n), k)
        for j in range(n):
            x = d[i, j] / end if end > 0 else d[i, j]
            rows[i - n, j] = s[j] / 2 / max(x, 1e-12)
    return (S + S.T) / 2, rows


def gaussian_graph(d, n, bandwidth="self-tuning", k=None, self_affinity=False):
    """exp(-x), x = d / (2 sigma^2) or d / (sigma_i sigma_j); rows of the others exp(-x) / x."""
    order = [nearest(d[i, :n], [j for j in range(n) if j != i]) for i in range(len(d))]
    sigma = np.zeros(len(d))
    for i in range(len(d)):
        sigma[i] = np.sqrt(d[i, order[i][:7][-1]]) if order[i] else 0.0
        if sigma[i] == 0:
            apart = [d[i, j] for j in range(n) if d[i, j] > 0]
            sigma[i] = np.sqrt(min(apart)) if apart else 1.0

    def exponent(i, j):
        if bandwidth == "self-tuning":
            return d[i, j] / (sigma[i] * sigma[j])
        return d[i, j] / (2 * bandwidth**2)

    near = [order[i] if k is None else order[i][:k] for i in range(len(d))]
    W = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            if i != j and (j in near[i] or i in near[j]):
                w = np.exp(-exponent(i, j))
                W[i, j] = w if w >= np.finfo(float).tiny else 0.0
        if self_affinity:
            W[i, i] = 1.0
    rows = np.zeros((len(d) - n, n))
    for i in range(n, len(d)):
        for j in near[i]:
            x = exponent(i, j)
            rows[i - n, j] = np.exp(-x) / max(x, 1e-12)
    return W, rows


def walk(W, laziness=0.0):
    """P = laziness I + (1 - laziness) D^-1 W; a row of zeros of W stays one of D^-1 W."""
    P = np.zeros_like(W)
    for i in range(len(W)):
        if W[i].sum() > 0:
            P[i] = (1 - laziness) * W[i] / W[i].sum()
        P[i, i] += laziness
    return P


def seed_vector(rows, n, ids, weights):
    """y: points of the query, and unseen vectors as their neighbours in proportion."""
    y = np.zeros(n)
    for i, weight in zip(ids, weights, strict=False):
        y[i] += weight
    for row, weight in zip(rows, weights[len(ids) :], strict=True):
        if row.sum() > 0:
            y += weight * row / row.sum()
    return y


def pagerank(W, rows, ids, weights, alpha):
    """f = (1 - alpha) (I - alpha P')^-1 y."""
    y = seed_vector(rows, len(W), ids, weights)
    return np.linalg.solve(np.eye(len(W)) - alpha * walk(W).T, (1 - alpha) * y)


def manifold(W, rows, ids, weights, alpha):
    """f = (1 - alpha) (I - alpha S)^-1 y with S = D^-1/2 W D^-1/2."""
    y = seed_vector(rows, len(W), ids, weights)
    S = np.zeros_like(W)
    degree = W.sum(axis=1)
    for i in range(len(W)):
        for j in range(len(W)):
            if W[i, j] > 0:
                S[i, j] = W[i, j] / np.sqrt(degree[i] * degree[j])
    return np.linalg.solve(np.eye(len(W)) - alpha * S, (1 - alpha) * y)


def self_diffusion(W, rows, ids, weights, n_steps):
    """W_t = W_{t-1} P + I from I, then W_t D^-1; the rows of the query."""
    y, P, A = seed_vector(rows, len(W), ids, weights), walk(W), np.eye(len(W))
    for _ in range(n_steps):
        A = A @ P + np.eye(len(W))
    degree = W.sum(axis=1)
    return np.array([f / degree[j] if degree[j] > 0 else 0.0 for j, f in enumerate(y @ A)])


def keep_strongest(W, k):
    """The k largest weights of every row, ties by index."""
    kept = np.zeros_like(W)
    for i in range(len(W)):
        for j in nearest(-W[i], [j for j in range(len(W)) if W[i, j] > 0])[:k]:
            kept[i, j] = W[i, j]
    return kept


def lcdp(W, rows, ids, weights, n_steps, laziness, k=None):
    """A_t = T A_{t-1} T' from T; the rows of the query."""
    y = seed_vector(rows, len(W), ids, weights)
    A = T = walk(keep_strongest(W, k), laziness)
    for _ in range(n_steps):
        A = T @ A @ T.T
    return y @ A


def tensor(W, rows, ids, weights, n_steps, laziness, alpha=1.0, k=None):
    """Q_t = alpha T Q_{t-1} T' + I from I; the rows of the query."""
    y, Q = seed_vector(rows, len(W), ids, weights), np.eye(len(W))
    T = walk(keep_strongest(W, k), laziness)
    for _ in range(n_steps):
        Q = alpha * T @ Q @ T.T + np.eye(len(W))
    return y @ Q


def transduction(W, rows, ids, weights, n_steps):
    """F <- P f with the query clamped; a walk at i meets an unseen vector with i's share of it."""
    n, P = len(W), walk(W)
    missed, gained = np.ones(n), np.zeros(n)
    for i in range(n):
        met = [row[i] / row.sum() if row.sum() > 0 else 0.0 for row in rows]
        for share in met:
            missed[i] *= 1 - share
        if sum(met) > 0:
            gained[i] = (1 - missed[i]) * np.average(weights[len(ids) :], weights=met)
    f = gained.copy()
    f[ids] = weights[: len(ids)]
    if n_steps is None:
        f[[i for i in range(n) if i not in set(ids)]] = 0.0
        free = sorted(set(range(n)) - set(ids))
        A = np.eye(len(free)) - missed[free][:, None] * P[np.ix_(free, free)]
        f[free] = np.linalg.solve(A, missed[free] * (P[free] @ f) + gained[free])
        return f
    for _ in range(n_steps):
        f = missed * (P @ f) + gained
        f[ids] = weights[: len(ids)]
    return f


def diffusion(W, T, start, update, n_steps, alpha, restart):
    """The N x N matrix of Donoser and Bischof's family."""
    identity = np.eye(len(W))
    A = {"identity": identity, "weights": W, "walk": walk(W), "transition": T}[start]
    for _ in range(n_steps):
        spread = {"left": T @ A, "right": A @ T, "both": T @ A @ T.T}[update]
        A = alpha * spread + restart * identity
    return A


def k_reciprocal(d, n, ids, weights, k1, k2, distance_weight, scale=None):
    """Re-ranking by k-reciprocal encodings; each example's final distances, then `plain_scores`.

    Distances in encodings are divided by ``scale``, one for each point; by default by four times
    the distance of the last of the k1 neighbours.
    """
    order = [[i, *nearest(d[i, :n], [j for j in range(n) if j != i])] for i in range(n)]

    def reciprocal(i, k):
        return {j for j in order[i][: k + 1] if i in order[j][: k + 1]}

    V = np.zeros((n, n))
    for i in range(n):
        members = expanded = reciprocal(i, k1)
        for j in members:
            half = reciprocal(j, (k1 + 1) // 2)
            if 3 * len(half & members) >= 2 * len(half):
                expanded = expanded | half
        unit = 4 * d[i, order[i][: k1 + 1][-1]] if scale is None else scale[i]
        for j in expanded:
            V[i, j] = np.exp(-d[i, j] / unit) if unit > 0 else float(d[i, j] == 0)
        V[i] /= V[i].sum()
    averaged = [np.mean([V[j] for j in order[i][:k2]], axis=0) for i in range(n)]
    rows = []
    for example in [*ids, *range(n, len(d))]:
        own = averaged[example] if example < n else None
        if own is None:
            own = np.mean([V[j] for j in nearest(d[example, :n], range(n))[:k2]], axis=0)
        plain = d[example, :n] / (d[example, :n].max() or 1.0)
        jaccard = [1 - np.minimum(own, v).sum() / np.maximum(own, v).sum() for v in averaged]
        rows.append((1 - distance_weight) * np.array(jaccard) + distance_weight * plain)
    return plain_scores(rows, weights)


def hypergraph(d, n, rows, ids, weights, k, n_steps):
    """LHRR: reciprocal ranks, hyperedges of neighbours of neighbours, A = HH' o H'H o H'wH."""
    length = 2 * k
    lists = [[i, *nearest(d[i, :n], [j for j in range(n) if j != i])][:length] for i in range(n)]
    for _ in range(n_steps):
        place = [{j: t + 1 for t, j in enumerate(one)} for one in lists]
        for i in range(n):
            # The sort is stable: ties stay as they were.
            lists[i] = sorted(
                lists[i], key=lambda j, i=i: place[i][j] + place[j].get(i, length + 1)
            )
        P, H = np.zeros((n, n)), np.zeros((n, n))
        for i in range(n):
            for t, j in enumerate(lists[i][:k], start=1):
                P[i, j] = 1 - np.log(t) / np.log(k)
        for i in range(n):
            for x in range(n):
                for j in range(n):
                    H[i, j] += P[i, x] * P[x, j]
        w = [sum(sorted(row, reverse=True)[:k]) for row in H]
        A = (H @ H.T) * (H.T @ H) * (H.T @ np.diag(w) @ H)
        for i in range(n):
            # What rounding alone tells apart is tied, and ties stay as they were.
            shown = [float(f"{value:.11e}") for value in A[i]]
            before = {j: t for t, j in enumerate(lists[i])}
            others = [j for j in range(n) if j != i and A[i, j] > 0]
            others.sort(key=lambda j, a=shown, t=before: (-a[j], t.get(j, length), j))
            left = [j for j in lists[i] if j != i and j not in others]
            lists[i] = [i, *others, *left][:length]
    np.fill_diagonal(A, 0.0)
    return seed_vector(rows, n, ids, weights) @ walk(A, 0.5)


def query_expansion(X, vectors, ids, weights, k, alpha, augment=0, cosine=False):
    """q' = (q + sum s_j^alpha x_j) / (1 + sum s_j^alpha), then `plain_scores` of the distances."""

    def unit(points):
        points = np.array(points, dtype=float)
        return np.array([x / np.sqrt(x @ x) for x in points]) if cosine else points

    def mean(of, sq_distances, near, whole):
        s = [max(0.0, 1 - sq_distances[j] / whole) ** alpha for j in near]
        total = of + sum((s_j * X[j] for s_j, j in zip(s, near, strict=True)), 0 * of)
        return total / (1 + sum(s))

    def whole(rows):
        return 2.0 if cosine else np.mean(rows)

    X = unit(X)
    if augment:
        d, rest = sq_distances(X), range(len(X))
        near = [nearest(d[i], [j for j in rest if j != i])[:augment] for i in rest]
        X = unit([mean(X[i], d[i], near[i], whole(d[i])) for i in rest])
    examples = np.array([*X[ids], *unit(vectors)])
    rows = np.array([[((x - e) ** 2).sum() for x in X] for e in examples])
    shares = np.maximum(weights, 0) / np.maximum(weights, 0).sum()
    near = nearest(shares @ rows, [j for j in range(len(X)) if j not in set(ids)])[:k]
    expanded = unit([mean(shares @ examples, shares @ rows, near, whole(shares @ rows))])[0]
    scores = -((X - expanded) ** 2).sum(axis=1)
    negative = [row * -w for row, w in zip(rows, weights, strict=True) if w < 0]
    return scores + sum(negative) / len(negative) if negative else scores


def refine(points, queries, candidates, own, k):
    """The k nearest of each query's candidates by differences, and the farthest of them all."""
    indices = np.full((len(queries), k), -1)
    d = np.full((len(queries), k), np.inf)
    farthest = np.zeros(len(queries))
    for i, query in enumerate(queries.astype(float)):
        measured = {j: ((points[j].astype(float) - query) ** 2).sum() for j in candidates[i]}
        measured = {j: value if j >= 0 else np.inf for j, value in measured.items()}
        farthest[i] = max(measured.values())
        kept = [j for j in measured if j not in (-1, own[i])]
        kept = sorted(kept, key=lambda j: (measured[j], j))[:k]
        indices[i, : len(kept)] = kept
        d[i, : len(kept)] = [measured[j] for j in kept]
    return indices, d, farthest


def push(A, b, touched, level, relaxation):
    """Relax rows whose residual is above the level, in sweeps; A has row sums of one or more.

    A sweep takes the points in the order in which they were touched, which begins with
    ``touched``. Returns the values, the residual ``b - A x`` and the number of steps.
    """
    x, r, touched, steps = np.zeros(len(b)), b.copy(), list(touched), 0
    while queue := [i for i in touched if abs(r[i]) > level]:
        for i in queue:
            step = relaxation * r[i] / A[i, i]
            x[i] += step
            r = r - A[:, i] * step
            steps += 1
            touched += [j for j in np.flatnonzero(A[:, i]) if j not in touched]
    return x, r, steps


def conjugate_gradients(A, b, x, n_steps):
    """Take steps with the diagonal as preconditioner, for symmetric A."""
    x = x.copy()
    r = b - A @ x
    z = r / np.diag(A)
    p = z
    for _ in range(n_steps):
        length = (r @ z) / (p @ A @ p)
        x = x + length * p
        following = r - length * (A @ p)
        next_z = following / np.diag(A)
        p = next_z + (following @ next_z) / (r @ z) * p
        r, z = following, next_z
    return x


def known_errors(A, r, steps):
    """What is known of ``A^-1 r`` after so many steps of Jacobi's method from zero, and the rest.

    The rest is the share of the largest possible error that is still unknown.
    """
    c = np.diag(A)
    mean = (np.diag(c) - A) / c[:, None]
    known, share = np.zeros(len(r)), np.ones(len(r))
    for _ in range(steps):
        known, share = r / c + mean @ known, mean @ share
    return known, share


def certain_top(A, b, x, top, cut):
    """Whether ``top`` entries of ``A^-1 b`` are above a cut and all others below, from residuals.

    Errors, ``c_i e_i = r_i + sum_j B_ij e_j``, lie between the least and the largest residual
    and zero; this is put into the right side three times.
    """
    r = b - A @ x
    c = np.diag(A)
    mean = (np.diag(c) - A) / c[:, None]
    high, low = np.full(len(x), max(r.max(), 0.0)), np.full(len(x), min(r.min(), 0.0))
    for _ in range(3):
        high, low = r / c + mean @ high, r / c + mean @ low
    above, below = x + low > cut, x + high < cut
    return bool(above.sum() == top and np.all(above | below) and cut > max(r.max(), 0.0))


def cut_behind(A, b, x, top, level):
    """The middle between the top and the others, where errors are known from two steps.

    Two steps are taken only for entries near the last of the top; returns the gap as well.
    Entries of zero have not been given a value, and are left out.
    """
    r = b - A @ x
    c = np.diag(A)
    mean = (np.diag(c) - A) / c[:, None]
    places = sorted(np.flatnonzero(x), key=lambda i: -x[i])
    last = x[places[top - 1]]
    near = [i for i in places if abs(x[i] - last) <= 2 * level]
    if len(near) == sum(i in near for i in places[:top]):
        return last - level, 2 * level
    guess = x.copy()
    guess[near] = (x + r / c + mean @ (r / c))[near]
    ordered = sorted((guess[i] for i in places), reverse=True)
    return (ordered[top - 1] + ordered[top]) / 2, ordered[top - 1] - ordered[top]


def blend(f, d, left_out, k, degrees, weight, opposed, alone):
    """Shape scores times exp(-weight min(u, horizon)), u the distance in the query's own unit.

    For an example that is ``alone`` no neighbour has more shape than the nearest.
    Points that are nearer to a negative example, at distance ``opposed``, are beyond the horizon.
    """
    others = nearest(d, [j for j in range(len(f)) if j not in left_out])
    first, last = d[others[0]], d[others[min(k, len(others) - 1)]]
    near = others[:k]
    hubness = sum(degrees[j] for j in near) / len(near)
    horizon = 1 + min(max((hubness - 1.15) / 0.15, 0.0), 1.0)
    scores = np.array(f, dtype=float)
    for j in others:
        if f[j] > 0:
            u = (d[j] - first) / (last - first) if last > first else np.inf * (d[j] > first)
            u = 0.0 if np.isnan(u) else u
            u = np.inf if opposed[j] < d[j] else u
            most = f[others[0]] if alone and f[others[0]] > 0 and j in others[: k + 1] else np.inf
            scores[j] = min(f[j], most) * np.exp(-weight * min(u, horizon))
    return scores, horizon


def reciprocal_ranks(f, d, left_out):
    """1 / (60 + rank) by shape, plus 1 / (60 + rank) by distance, over points with a score."""
    used = [j for j in range(len(f)) if j not in left_out and f[j] > 0]
    by_shape = sorted(used, key=lambda j: (-f[j], j))
    by_distance = sorted(used, key=lambda j: (d[j], j))
    scores = np.zeros(len(f))
    for order in (by_shape, by_distance):
        for place, j in enumerate(order):
            scores[j] += 1 / (60 + place + 1)
    return scores


def diversify(relevance, d, top, amount):
    """Maximal marginal relevance, one candidate and one pair at a time."""
    n = len(relevance)
    low, high = min(relevance), max(relevance)
    r = [(value - low) / (high - low) if high > low else 1.0 for value in relevance]
    apart = [[x for x in row if x > 0] for row in d]
    unit = np.median([min(row) for row in apart if row]) if any(apart) else 1.0
    chosen = [0]
    while len(chosen) < min(top, n):
        best, most = None, -np.inf
        for i in range(n):
            if i not in chosen:
                alike = max(np.exp(-d[i][j] / unit) for j in chosen)
                gain = (1 - amount) * r[i] - amount * alike
                if gain > most:
                    best, most = i, gain
        chosen.append(best)
    return chosen


def held(A, points, rhs, clamped, values, pulled, pull):
    """Solve A x = b with some entries of x held at their values, and pulls on the diagonal."""
    A, x = A.copy(), np.zeros(len(A))
    for i, more in zip(pulled, pull, strict=True):
        A[i, i] += more
    for i, value in zip(clamped, values, strict=True):
        x[i] = value
    b = -A @ x
    for i, more in zip(points, rhs, strict=True):
        b[i] += more
    free = [i for i in range(len(A)) if i not in set(clamped)]
    if free:
        x[free] = np.linalg.solve(A[np.ix_(free, free)], b[free])
    return x


def greens_kernel(W, smoothness):
    """G = (I + 2 lambda L)^-1."""
    return np.linalg.inv(np.eye(len(W)) + 2 * smoothness * laplacian(W))


def shape_vectors(W, smoothness, n_components):
    """phi_i = (u_mi / sqrt(1 + 2 lambda mu_m))_m over the lowest eigenvectors of L."""
    mu, u = np.linalg.eigh(laplacian(W))
    phi = np.zeros((len(W), n_components))
    for m in range(n_components):
        phi[:, m] = u[:, m] / np.sqrt(1 + 2 * smoothness * mu[m])
    return phi


def kernel_with_new_point(W, s, smoothness):
    """G of the graph with one more point, the last, that is joined by s / 2."""
    n = len(W)
    larger = np.zeros((n + 1, n + 1))
    larger[:n, :n] = W
    larger[n, :n] = larger[:n, n] = np.asarray(s) / 2
    return greens_kernel(larger, smoothness)

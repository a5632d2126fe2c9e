"""Does any bound break? A million small systems, drawn at random, beside their exact solutions.

Each is one of four queries on a random graph of 2 to 16 points, whose weights spread over up to
eight powers of ten, in single or double precision, under RAN, PageRank or manifold ranking with a
smoothness of up to 1e5 or an alpha of up to 1 - 1e-6. It has one to three examples, also negative
ones and unseen vectors, which are eliminated from the system, and an effort: any tolerance, any
number of results to prove, any budget, with a reserve or without. The region solver answers all of
them, the other two every tenth. Exact solutions are refined until their residuals, in extended
precision, are beyond double precision. Counted are scores that are off by more than the bound,
those of the query's own points among them, and answers that are called certified though a point
outside scores higher.
"""

from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from multiprocessing import get_context
from os import cpu_count
from typing import NamedTuple

import numpy as np
from kit.report import Goal, options, publish, table, versions
from scipy import sparse

from rankfold.solvers import SOLVERS, Boundary, Effort, RegionSolver, System

N_SYSTEMS, BLOCK, QUERIES = 1_000_000, 1_000, 4
KINDS = ("ran", "pagerank", "manifold")
SLACK = 1e-15
"""What is left of the exact solutions' own error, in their largest score."""


class Problem(NamedTuple):
    """A graph as a system, some queries, and how far to solve for each."""

    kind: str
    system: System
    boundaries: list[Boundary]
    efforts: list[Effort]


def random_graph(rng, n):
    """Return symmetric weights of very uneven size."""
    spread = rng.choice([0, 1, 4, 8])
    edges = np.triu(rng.random((n, n)) < rng.choice([0.1, 0.3, 0.8]), 1)
    weights = edges * 10 ** rng.uniform(-spread, 0, (n, n))
    precision = np.float32 if rng.random() < 0.5 else np.float64
    return sparse.csr_array((weights + weights.T).astype(precision))


def held_query(rng, n, points, seeds):
    """Return a query of RAN: examples are clamped, an unseen vector pulls on its neighbours."""
    lowest, size = min(0.0, float(seeds.min())), float(np.abs(seeds).max())
    boundary = Boundary(clamped=points, values=seeds, left_out=points, size=size, lowest=lowest)
    near = np.setdiff1d(rng.choice(n, rng.integers(0, 4)), points)
    if not len(near):
        return boundary
    pull, seed = 10 ** rng.uniform(-3, 3) * rng.random(len(near)), rng.uniform(-1, 1)
    return boundary._replace(
        points=near, rhs=pull * seed, pulled=near, pull=pull,
        size=max(size, abs(seed)), lowest=min(lowest, seed),
    )  # fmt: skip


def random_query(rng, kind, system, alpha):
    n, power = system.n_points, 1.0 if kind == "pagerank" else 0.5
    points = rng.choice(n, rng.integers(1, min(4, n)), replace=False)
    seeds = rng.random(len(points)) + 0.01
    if rng.random() < 0.6:
        seeds *= rng.choice([-1.0, 1.0], len(points))
    if kind == "ran":
        return held_query(rng, n, points, seeds)
    rhs = (1 - alpha) * system.scale[points] ** ((1 - power) / power) * seeds
    size = float(np.abs(rhs / system.margin[points]).max())
    lowest = -size if seeds.min() < 0 else 0.0
    return Boundary(points, rhs, left_out=points, size=size, lowest=lowest)


def random_effort(rng, n, everything):
    top = None if everything else int(rng.integers(0, n + 1))
    budget = None if rng.random() < 0.4 else int(rng.integers(1, n + 1))
    reserve = 0 if budget is None else int(rng.integers(0, n))
    return Effort(10 ** rng.uniform(-12, -2), top, budget, reserve)


def random_problem(rng, n):
    weights, kind = random_graph(rng, n), KINDS[rng.integers(3)]
    alpha, power = 1 - 10 ** rng.uniform(-6, -0.01), 1.0 if kind == "pagerank" else 0.5
    if kind == "ran":
        system = System.ran(weights, float(10 ** rng.uniform(-3, 5)))
    else:
        system = System.walk(weights, alpha, power)
    everything = rng.random() < 0.2
    boundaries = [random_query(rng, kind, system, alpha) for _ in range(QUERIES)]
    efforts = [random_effort(rng, n, everything) for _ in range(QUERIES)]
    return Problem(kind, system, boundaries, efforts)


def with_query(matrix, boundary):
    """Return the matrix and the right-hand side with a query in them."""
    matrix, rhs = matrix.copy(), np.zeros(len(matrix), dtype=np.longdouble)
    np.add.at(rhs, boundary.points, boundary.rhs)
    matrix[boundary.pulled, boundary.pulled] += boundary.pull
    matrix[boundary.clamped] = 0.0
    matrix[boundary.clamped, boundary.clamped] = 1.0
    rhs[boundary.clamped] = boundary.values
    return matrix, rhs


def exact_scores(problems):
    """Return the exact scores of problems of one size, a row for each query."""
    systems, scales = [], []
    for one in problems:
        couplings = one.system.couplings.toarray().astype(np.longdouble)
        matrix = np.diag(one.system.margin + couplings.sum(axis=1)) - couplings
        systems += [with_query(matrix, boundary) for boundary in one.boundaries]
        scales += [one.system.scale] * QUERIES
    matrices, rhs = (np.stack(parts) for parts in zip(*systems, strict=True))
    rough, x = np.linalg.inv(matrices.astype(np.float64)), np.zeros_like(rhs)
    for _ in range(8):
        missing = (rhs - np.einsum("bij,bj->bi", matrices, x)).astype(np.float64)
        x += np.einsum("bij,bj->bi", rough, missing)
    return (x * np.stack(scales)).reshape(len(problems), QUERIES, -1)


def breaks(solution, boundary, effort, exact):
    """Return whether the bound is broken, whether by a point of the query, and the certificate."""
    scores = np.zeros(len(exact))
    scores[solution.points] = solution.scores
    told = np.ones(len(exact), dtype=bool)
    if not solution.complete:
        told[:] = False
        told[solution.points] = True
    slack = SLACK * float(np.abs(exact).max())
    off = told & (np.abs(scores - exact) > solution.bound + slack)
    own = np.zeros(len(exact), dtype=bool)
    own[boundary.left_out] = True
    wrong, top = False, effort.top
    if solution.certified and top is not None and not solution.complete:
        inside = np.zeros(len(exact), dtype=bool)
        inside[solution.points] = True
        best, rest = exact[inside & ~own], exact[~inside & ~own]
        wrong = bool(len(best) and len(rest) and rest.max() > best.min() + slack)
        wrong |= len(best) != top
    return bool(off.any()), bool((off & own).any()), wrong


def check_block(seed):
    """Solve a block of systems of one size; return counts by method and solver."""
    rng, counts = np.random.default_rng(seed), {}
    n = int(rng.integers(2, 17))
    problems = [random_problem(rng, n) for _ in range(BLOCK // QUERIES)]
    for place, (problem, exact) in enumerate(zip(problems, exact_scores(problems), strict=True)):
        for name in SOLVERS if place % 10 == 0 else ["region"]:
            solver = SOLVERS[name](problem.system)
            if name == "region" and rng.random() < 0.5:  # gradients take over at once
                solver = RegionSolver(problem.system, patience=0.0, whole_share=rng.random())
            tally = counts.setdefault((problem.kind, name), np.zeros(5, dtype=int))
            solutions = solver.solve(problem.boundaries, problem.efforts)
            queries = zip(solutions, problem.boundaries, problem.efforts, exact, strict=True)
            for solution, *query in queries:
                tally += [1, *breaks(solution, *query), solution.certified]
    return counts


def main():
    parser = options(__doc__)
    parser.add_argument("--systems", type=int, default=N_SYSTEMS)
    arguments = parser.parse_args()
    totals = {}
    n_blocks = -(-arguments.systems // BLOCK)
    check_block(0)  # compiles, once for all processes
    with ProcessPoolExecutor(cpu_count(), get_context("spawn")) as processes:
        for done, counts in enumerate(processes.map(check_block, range(n_blocks)), 1):
            for key, tally in counts.items():
                totals[key] = totals.get(key, 0) + tally
            if done % 50 == 0:
                print(f"{done * BLOCK:,} systems", flush=True)
    heads = ("solved", "bounds broken", "by the query's own", "wrongly certified", "certified")
    rows = table(
        {"method": kind, "solver": name, **dict(zip(heads, tally.tolist(), strict=True))}
        for (kind, name), tally in sorted(totals.items())
    )
    broken = sum(row["bounds broken"] + row["wrongly certified"] for row in rows)
    day = f"{datetime.now(UTC):%Y-%m-%d}"
    intro = [
        *__doc__.split("\n\n")[1].splitlines(),
        "",
        f"{n_blocks * BLOCK:,} systems on {day}. " + versions("rankfold", "numba", "scipy"),
    ]
    goals = [Goal("bounds broken, or answers wrongly certified", broken, most=0)]
    publish("bounds", "bounds beside exact solutions", intro, {"Counts": rows}, goals,
            docs=arguments.docs)  # fmt: skip


if __name__ == "__main__":
    main()

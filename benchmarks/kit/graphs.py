"""Graphs to measure on: built by the library, with lists that are searched only once."""

import os
from pathlib import Path

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import cg

from rankfold import FaissEngine, datasets
from rankfold.datasets.synthetic import sheets
from rankfold.solvers import Boundary, Effort, RegionSolver, System
from rankfold.types import Neighbors

FOLDER = Path("out/benchmarks/lists")
POINTS_PER_SHEET = 10_000


class Remembered:
    """An engine that searches the lists of its database once, and keeps them in a file if named.

    Fitting several rankers on the same points then costs one search. ``X`` has the vectors, where
    some beside them will be asked for.
    """

    def __init__(self, engine, width, name=None, X=None):
        self.engine, self.metric, self.X = engine, engine.metric, X
        self.n_points, self.n_features = engine.n_points, engine.n_features
        self.n_alive, self.alive = engine.n_alive, engine.alive
        self.search, self.sq_distances = engine.search, engine.sq_distances
        self.between, self.pairs = engine.between, engine.pairs
        self.tie_order = engine.tie_order
        path = FOLDER / f"{name}_{width}.npz"
        if name and path.is_file():
            print(f"reading the lists of {path}; delete it to search anew", flush=True)
            with np.load(path, allow_pickle=False) as content:
                self.lists = Neighbors(content["indices"], content["sq_distances"])
            return
        print(f"searching {width} neighbours of {self.n_points:,} points", flush=True)
        self.lists = engine.rows(np.arange(self.n_points), width)
        if name:
            FOLDER.mkdir(parents=True, exist_ok=True)
            partial = path.with_suffix(".partial.npz")
            content = {"indices": self.lists.indices, "sq_distances": self.lists.sq_distances}
            np.savez(partial, **content)
            partial.replace(path)

    def rows(self, ids, k):
        """Take the lists of these points, as far as they go."""
        if k > self.lists.width:
            return self.engine.rows(ids, k)
        return self.lists.take(ids).head(k)

    def nearest(self, query, k):
        """Find what is nearest to several examples; rankers know an engine by this method."""
        return self.engine.nearest(query, k)

    def beside(self, query):
        """Return a vector that is not in the database: between a point and its nearest one."""
        return (self.X[query] + self.X[self.lists.indices[query, 0]]) / 2


def mnist(width=22):
    """Return the engine of all 70,000 digits; FAISS looks at every one of them."""
    if not os.environ.get("RANKFOLD_DATA"):
        raise SystemExit("set RANKFOLD_DATA to the folder with the data files")
    X = datasets.load("mnist").X
    return Remembered(FaissEngine(X, index="flat"), width, "mnist", X)


def many_sheets(n_points, width=22):
    """Return an engine of points on sheets, always as many on each."""
    X = sheets(n_points, n_sheets=max(1, n_points // POINTS_PER_SHEET)).X
    return Remembered(FaissEngine(X), width, f"sheets_{n_points}", X)


def draw(n_points, n_queries):
    """Draw queries, always the same."""
    return np.random.default_rng(0).choice(n_points, n_queries, replace=False).tolist()


def region_solver(weights, smoothness, **settings):
    """Return the solver of RAN's system that stays where a query reaches."""
    return RegionSolver(System.ran(weights, smoothness), **settings)


def boundary_of(query):
    """Return a point as a query, as RAN has it."""
    own = np.array([query])
    return Boundary(clamped=own, values=np.ones(1), left_out=own)


def solved(solver, query, tol, top=None, budget=None):
    """Return the solution for a point as a query: nothing but the solver is asked."""
    (solution,) = solver.solve([boundary_of(query)], [Effort(tol, top, budget)])
    return solution


def whole_system(weights, smoothness):
    """Return RAN's matrix for global solves, ``A = 2 lambda L + I``."""
    return System.ran(weights.astype(np.float64), smoothness).matrix


class GlobalGradients:
    """SciPy's conjugate gradients with Jacobi's preconditioner, on a whole system.

    A query of RAN, whose score is held at one, has the scores of ``A^-1 e_q``, divided by that of
    the query itself, so that nothing is cut out of the matrix.
    """

    def __init__(self, matrix):
        self.matrix, self.jacobi = matrix, sparse.diags_array(1 / matrix.diagonal())

    def __call__(self, query, rtol=0.0, atol=0.0):
        """Return the scores of all points."""
        b = np.zeros(self.matrix.shape[0])
        b[query] = 1.0
        scores, _ = cg(self.matrix, b, rtol=rtol, atol=atol, M=self.jacobi)
        return scores / scores[query]

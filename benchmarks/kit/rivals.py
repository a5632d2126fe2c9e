"""Other libraries on the same graph: each method's name, the system it solves, and a function.

The function takes a query and returns its best 100 points.
"""

import faiss
import igraph
import networkx
import numpy as np
from scipy import sparse
from sklearn.semi_supervised import LabelSpreading
from sknetwork.ranking import PageRank
from sknetwork.regression import Dirichlet

from kit.graphs import GlobalGradients, whole_system
from kit.timing import best, seconds

TOP = 100


def of_ran(weights, smoothness):
    """Return solvers of RAN's system."""
    gradients = GlobalGradients(whole_system(weights, smoothness))
    n_points = weights.shape[0]
    ground = sparse.csr_matrix(np.full((1, n_points), 1 / (2 * smoothness)))
    grounded = sparse.bmat([[sparse.csr_matrix(weights), ground.T], [ground, None]], "csr")

    def dirichlet(query, n_iter):
        scores = Dirichlet(n_iter).fit_predict(grounded, {query: 1.0, n_points: 0.0}, init=0.0)
        return best(scores[:-1], query, TOP)

    return {
        "SciPy cg, rtol 1e-3": ("RAN", lambda q: best(gradients(q, rtol=1e-3), q, TOP)),
        "SciPy cg, rtol 1e-4": ("RAN", lambda q: best(gradients(q, rtol=1e-4), q, TOP)),
        "SciPy cg, rtol 1e-6": ("RAN", lambda q: best(gradients(q, rtol=1e-6), q, TOP)),
        "scikit-network Dirichlet, 10 steps": ("RAN", lambda q: dirichlet(q, 10)),
        "scikit-network Dirichlet, 30 steps": ("RAN", lambda q: dirichlet(q, 30)),
    }


def of_pagerank(weights, damping):
    """Return solvers of PageRank; scikit-network's push cannot divide by degrees below one."""
    plain = sparse.csr_matrix(weights.astype(np.float64))
    upper = sparse.triu(plain, format="coo")
    pairs = np.column_stack([upper.row, upper.col])
    linked = igraph.Graph(n=plain.shape[0], edges=pairs, edge_attrs={"weight": upper.data})
    print("making the graph of networkx", flush=True)
    whole = networkx.from_scipy_sparse_array(plain)

    def network(query, **settings):
        return best(PageRank(damping, **settings).fit_predict(plain, {query: 1.0}), query, TOP)

    def prpack(query):
        scores = linked.personalized_pagerank(
            damping=damping, reset_vertices=[query], weights="weight", directed=False
        )
        return best(scores, query, TOP)

    def through_networkx(query):
        scores = networkx.pagerank(whole, damping, {query: 1.0})
        return best([scores[point] for point in range(len(scores))], query, TOP)

    return {
        "scikit-network PageRank, 10 steps": ("PageRank", network),
        "scikit-network PageRank, 50 steps": ("PageRank", lambda q: network(q, n_iter=50)),
        "scikit-network PageRank, bicgstab": ("PageRank", lambda q: network(q, solver="bicgstab")),
        "igraph PageRank, prpack": ("PageRank", prpack),
        "networkx PageRank": ("PageRank", through_networkx),
    }


def of_labels(weights, damping):
    """Return scikit-learn's label spreading, with W for its kernel."""
    plain = sparse.csr_matrix(weights.astype(np.float64))
    rows = np.arange(plain.shape[0], dtype=np.float64)[:, None]

    def ask(query):
        labels = np.full(len(rows), -1)
        labels[query], labels[(query + 1) % len(rows)] = 1, 0
        LabelSpreading(kernel=lambda _, other=None: plain, alpha=damping).fit(rows, labels)

    return {"scikit-learn LabelSpreading": (None, ask)}


def of_distance(X):
    """Return searches for the nearest vectors."""
    flat, graph = faiss.IndexFlatL2(X.shape[1]), faiss.IndexHNSWFlat(X.shape[1], 16)
    flat.add(X)
    took, _ = seconds(lambda: graph.add(X))
    print(f"FAISS HNSW built in {took:.0f} s", flush=True)
    graph.hnsw.efSearch = 2 * TOP
    every = faiss.omp_get_max_threads()

    def ask(query, index, n_threads):
        faiss.omp_set_num_threads(n_threads)
        found = index.search(X[query : query + 1], TOP + 1)[1][0]
        faiss.omp_set_num_threads(every)
        return found[found != query][:TOP]

    return {
        "FAISS flat, one thread": ("distance", lambda q: ask(q, flat, 1)),
        "FAISS flat, all threads": ("distance", lambda q: ask(q, flat, every)),
        "FAISS HNSW": ("distance", lambda q: ask(q, graph, every)),
    }

"""Draws the map of an index from its neighbour graph.

Takes a graph of pynndescent, too, which comes with this extra. It is here, and not among the
other tests, because pynndescent compiles itself for one or two minutes.
"""

from pynndescent import PyNNDescentTransformer

from rankfold import RAN, Index, datasets

X = datasets.load("digits").X[:300]
with Index.build(X, layout="graph") as index:
    assert index.info()["layout"] == "graph"

finder = PyNNDescentTransformer(n_neighbors=30, random_state=0).fit(X)
plain = RAN(10).fit(X).rank(0, top=10)
for graph in (finder.transform(X), finder.fit_transform(X)):
    found = RAN(10, metric="precomputed").fit(graph).rank(0, top=10)
    assert len(set(found.indices) & set(plain.indices)) >= 9

"""Draws the map of an index from its neighbour graph."""

from rankfold import Index, datasets

X = datasets.load("digits").X[:100]
with Index.build(X, layout="graph") as index:
    assert index.info()["layout"] == "graph"

"""Graphs of pynndescent; in a file of its own, since it compiles itself in every process."""

from pynndescent import PyNNDescentTransformer

from rankfold import RAN, datasets


def test_its_graphs_are_taken():
    X = datasets.load("digits").X[:300]
    finder = PyNNDescentTransformer(n_neighbors=30, random_state=0).fit(X)
    found = RAN(10, metric="precomputed").fit(finder.transform(X)).rank(0, top=10)
    plain = RAN(10).fit(X).rank(0, top=10)
    assert len(set(found.ids) & set(plain.ids)) >= 9

"""Ranks documents that carry their vectors."""

from haystack import Document

from rankfold import datasets
from rankfold.integrations.haystack import ShapeRanker

X = datasets.load("digits").X[:100]
documents = [Document(id=str(row), embedding=X[row].tolist()) for row in range(1, 100)]
found = ShapeRanker(top_k=5).run(X[0].tolist(), documents)["documents"]
assert len(found) == 5
assert found[0].score >= found[4].score

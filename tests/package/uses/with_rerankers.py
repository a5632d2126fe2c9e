"""Ranks texts whose vectors are known."""

from rankfold import datasets
from rankfold.integrations.rerankers import ShapeReranker

X = datasets.load("digits").X[:100]
reranker = ShapeReranker(lambda texts: [X[int(text)] for text in texts])
results = reranker.rank("0", [str(row) for row in range(1, 100)])
assert results.results_count() == 99
assert results[0].score >= results[1].score

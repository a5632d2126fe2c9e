"""Keeps an index in a file of Milvus Lite."""

from rankfold import Index, datasets

X = datasets.load("moons").X
place = {"path": "moons", "engine": "milvus:///./vectors.db"}
with Index.build(X, **place) as index:
    found = list(index.query(0, top=5))
with Index.build(X) as index:
    assert list(index.query(0, top=5)) == found

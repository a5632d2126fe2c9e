"""Builds an index of texts and asks it in words; the model comes inside of its package."""

from rankfold import Index

notes = ["a chess engine", "layers and undo for pictures", "mail in a terminal"]
with Index.build(texts=notes, embedder="wordllama") as index:
    assert index.query(text="undo in an image editor", top=1).ids == [1]

"""Draws why a result has its place."""

from pathlib import Path

from rankfold import RAN, datasets
from rankfold.explanation import draw_explanation, explain

X = datasets.load("moons").X
explanation = explain(RAN(n_neighbors=10).fit(X), query=94, point=139)
draw_explanation(explanation, "why.png", X2=X)
assert Path("why.png").read_bytes().startswith(b"\x89PNG")

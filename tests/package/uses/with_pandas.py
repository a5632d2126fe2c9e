"""Turns results into a frame."""

from rankfold import Index, datasets

moons = datasets.load("moons")
with Index.build(moons.X, payload={"moon": moons.labels}) as index:
    frame = index.query(0, top=3).to_frame()
assert frame.columns.tolist() == ["rank", "id", "score", "shape", "distance", "moon"]
assert len(frame) == 3

"""No extra: an index on disk, asked by point, by vector and under a condition."""

import numpy as np

from rankfold import Index, datasets

moons = datasets.load("moons")
with Index.build(moons.X, payload={"moon": moons.labels}, path="moons") as index:
    assert set(index.query(0, top=50).payload["moon"]) == {int(moons.labels[0])}
with Index.open("moons") as index:
    other = index.query(vectors=moons.X[0] + 0.01, where="moon = 1", top=5)
    assert other.payload["moon"] == [1] * 5
    assert np.isfinite(other.scores).all()

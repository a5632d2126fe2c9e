"""Builds an index with two processes, from an array of Zarr."""

import zarr

from rankfold import Index, datasets
from rankfold.cluster import build_index


def main():
    """Build, and compare with what one process builds."""
    X = datasets.load("digits").X[:200].astype("float32")
    zarr.save_array("vectors.zarr", X)
    assert build_index("vectors.zarr", "made", n_workers=2).points == 200
    with Index.open("made") as made, Index.build(X) as index:
        assert list(made.query(0, top=5)) == list(index.query(0, top=5))


if __name__ == "__main__":  # worker processes import this file
    main()

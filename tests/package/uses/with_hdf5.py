"""Reads points from HDF5, with their metric."""

import h5py
import numpy as np

from rankfold.inputs import read_points

with h5py.File("points.hdf5", "w") as file:
    file.attrs["distance"] = "angular"
    file["train"] = np.eye(4)
points = read_points("points.hdf5")
assert points.vectors.tolist() == np.eye(4).tolist()
assert points.metric == "cosine"

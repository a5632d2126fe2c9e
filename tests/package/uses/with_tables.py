"""Reads points from Parquet."""

import pyarrow as pa
import pyarrow.parquet as pq

from rankfold.inputs import read_points

table = pa.table({"id": ["a", "b"], "vector": [[0.1, 0.9], [0.4, 0.2]], "year": [2021, None]})
pq.write_table(table, "points.parquet")
points = read_points("points.parquet")
assert points.vectors.tolist() == [[0.1, 0.9], [0.4, 0.2]]
assert (points.ids, points.payload) == (["a", "b"], {"year": [2021, None]})

"""Ranks what a search of LanceDB finds."""

import lancedb
import numpy as np

from rankfold.integrations.lancedb import RankReranker

X = np.random.default_rng(0).random((60, 8)).astype("float32")
table = lancedb.connect("lance").create_table(
    "rows", [{"vector": x, "row": i} for i, x in enumerate(X)]
)
found = table.search(X[7]).limit(30).rerank(RankReranker(), query_string="?").to_arrow()
assert found["row"][0].as_py() == 7
assert len(found) == 30

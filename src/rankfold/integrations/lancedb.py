"""RAN as a reranker of LanceDB."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from sklearn.base import clone

from rankfold.check import check_choice
from rankfold.errors import InputError, MissingExtraError
from rankfold.integrations.documents import check_ranker, rerank
from rankfold.neighbors import ExactEngine
from rankfold.rankers import RAN
from rankfold.rankers.base import Ranker
from rankfold.types import FloatArray

try:
    import pyarrow as pa
    from lancedb.rerankers import Reranker
except ModuleNotFoundError:
    raise MissingExtraError("lancedb", "lancedb") from None

METRICS = {"l2": "euclidean", "cosine": "cosine"}
"""Names of LanceDB for what it measures, and ours."""


class RankReranker(Reranker):
    """Ranks the rows that a search has found by their shape around the query.

    The neighbour graph is that of these rows alone, so let the search find many more than are
    used. Distances to the query are those of the search. Where text finds rows, they have none:
    hybrid and full-text searches need ``embed``.

    Parameters
    ----------
    metric : {"l2", "cosine"}
        As in ``distance_type`` of the search; "l2" is LanceDB's default.
    column : str
        The column of vectors, which the search must return.
    embed : callable, optional
        Turns the text of a query into its vector.
    ranker : Ranker, optional
        ``RAN()`` by default, in whose scores shape and distance to the query are fused;
        ``RAN(fusion="none")`` ranks by shape alone. Its metric is not used.
    return_score : {"relevance", "all"}
        As for other rerankers.
    """

    def __init__(
        self,
        metric: Literal["l2", "cosine"] = "l2",
        *,
        column: str = "vector",
        embed: Callable[[str], Any] | None = None,
        ranker: Ranker | None = None,
        return_score: str = "relevance",
    ) -> None:
        super().__init__(return_score)
        check_choice(metric, "metric", tuple(METRICS))
        check_ranker(ranker)
        self.metric, self.column, self.embed, self.ranker = metric, column, embed, ranker

    def rerank_vector(self, query: str, vector_results: pa.Table) -> pa.Table:
        """Rank what a search by vector has found."""
        ranked = self._ranked(vector_results, query)
        return ranked if self.score == "all" else _without(ranked, "_distance")

    def rerank_fts(self, query: str, fts_results: pa.Table) -> pa.Table:
        """Rank what a search by text has found; needs ``embed``."""
        self._need_embed("full-text")
        ranked = self._ranked(fts_results, query)
        return ranked if self.score == "all" else _without(ranked, "_score")

    def rerank_hybrid(
        self, query: str, vector_results: pa.Table, fts_results: pa.Table
    ) -> pa.Table:
        """Rank what either search has found; needs ``embed``."""
        self._need_embed("hybrid")
        if self.score == "all":
            return self._ranked(self._merge_and_keep_scores(vector_results, fts_results), query)
        merged = self.merge_results(vector_results, fts_results)
        return _without(self._ranked(merged, query), "_distance", "_score")

    def _need_embed(self, kind: str) -> None:
        if self.embed is None:
            raise InputError(
                f"a {kind} search finds rows by text, which have no distance to the query; give "
                "RankReranker(embed=...), a function that turns the text into its vector.",
                "embed",
            )

    def _ranked(self, table: pa.Table, query: str) -> pa.Table:
        if not len(table):
            return self._handle_empty_results(table)
        engine = ExactEngine(self._vectors(table), METRICS[self.metric])
        ranker = RAN() if self.ranker is None else clone(self.ranker)
        places, scores = rerank(
            engine.pairs(np.arange(engine.n_points)),
            self._to_query(engine, table, query),
            ranker=ranker.set_params(metric="precomputed_sq"),
        )
        relevance = pa.array(scores.astype(np.float32))
        return table.take(pa.array(places)).append_column("_relevance_score", relevance)

    def _vectors(self, table: pa.Table) -> FloatArray:
        if self.column not in table.column_names:
            raise InputError(
                f"the search returned the columns {', '.join(table.column_names)}, but not "
                f"{self.column!r}; select the column of vectors, or name it with column=.",
                "column",
            )
        n_empty = table[self.column].null_count
        if n_empty:
            raise InputError(
                f"{n_empty} of the {len(table)} rows that were found have no vector in the column "
                f"{self.column!r}; leave them out with where('{self.column} IS NOT NULL').",
                "column",
            )
        return np.array(table[self.column].to_pylist(), dtype=np.float64)

    def _to_query(self, engine: ExactEngine, table: pa.Table, query: str) -> FloatArray:
        """Return the squared distances of the rows to the query, as the engine measures them."""
        if self.embed is not None:
            vector = np.asarray(self.embed(query), dtype=np.float64)
            return next(engine.sq_distances(np.empty(0, dtype=np.intp), vector[None, :]))
        found: FloatArray = np.maximum(np.asarray(table["_distance"], dtype=np.float64), 0.0)
        return 2 * found if self.metric == "cosine" else found  # 1 - cos, and squares


def _without(table: pa.Table, *columns: str) -> pa.Table:
    return table.drop_columns([name for name in columns if name in table.column_names])

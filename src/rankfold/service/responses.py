"""Bodies of answers, as pydantic models."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from rankfold.methods import Method
from rankfold.service.requests import (
    MOST_ALTERNATIONS,
    MOST_EXAMPLES,
    MOST_NEIGHBORS,
    MOST_POINTS,
    MOST_QUERIES,
    MOST_RESULTS,
    MOST_SKIPPED,
    Id,
    Value,
)
from rankfold.types import SolverName, Stopped

PIECE = 1000
"""Plain values that are written as JSON at once; of anything larger, a single one."""


class ListShare(BaseModel):
    """What one list of a hybrid query added to the score of a result."""

    rank: int | None = Field(description="The place in it; null beyond its first places.")
    score: float | None = Field(description="The score there.")
    share: float = Field(description="What it added: 1 / (60 + rank), or nothing.")


class Result(BaseModel):
    """A point and its score."""

    id: Id
    score: float = Field(
        description="By which results are in order. By plain distance, the cosine similarity, or "
        "minus the Euclidean distance."
    )
    shape: float | None = Field(
        description="The score by shape alone, where distance was fused with it; else null."
    )
    distance: float | None = Field(
        description="The plain distance to the query, in that case: Euclidean, or one minus the "
        "cosine similarity."
    )
    proven: bool | None = Field(
        description="Whether the score is proven to be `min_score` at least; null without one."
    )
    lists: dict[Literal["words", "distance", "shape"], ListShare] | None = Field(
        description="What each list added to the score of a query with `words`; else null."
    )
    payload: dict[str, Value]


class FusionDetails(BaseModel):
    """How shape and distance were combined in the scores of one answer."""

    kind: Literal["blend", "reciprocal_rank"] = Field(
        description="A blend is shape times exp(-weight min(u, horizon)), where u is the squared "
        "distance to the query in its own unit: 0 at its nearest neighbour, 1 at the first beyond "
        "those that the graph joins it to. Reciprocal ranks are added over both orders."
    )
    weight: float = Field(description="What distance can cost in a blend; 0 for ranks.")
    horizon: float = Field(
        description="The distance, in that unit, beyond which only shape counts: from 1 to 2."
    )
    hubness: float = Field(
        description="The mean degree of the query's nearest neighbours, relative to that of all "
        "points; the horizon grows where they are hubs."
    )


class QueryResponse(BaseModel):
    """The answer to a query, best first."""

    results: list[Result]
    method: Method
    fused: FusionDetails | None = Field(
        description="How distance was fused with shape; null where scores are of one alone."
    )
    certified: bool = Field(
        description="Whether it is proven that no other point scores higher than these."
    )
    complete: bool | None = Field(
        description="Whether it is proven that no other point scores `min_score`; null without one."
    )
    converged: bool = Field(
        description="Whether the solver got as far as it was asked to: to its tolerance, to a "
        "proof, or to the end of its budget."
    )
    bound: float = Field(description="No score is further than this from the exact one.")
    solver: SolverName = Field(
        description="What found the scores: one factorisation (direct) or conjugate gradients "
        "(cg) for the whole graph, the part of it around the query (region), the steps of a "
        "diffusion (steps), or plain distance (distance)."
    )
    stopped: Stopped = Field(
        description="Why it ended: nothing was left but rounding (exact), the best points were "
        "proven (proven), no score could be off by more than `tol` (tolerance), the budget was "
        "used up (budget), or it gave up (max_iter)."
    )
    touched: int = Field(description="How many points were looked at.")
    alternations: int | None = Field(
        description="How often RAN has learned graph and scores; null for other methods."
    )
    collapsed: bool = Field(
        description="Whether the query was cutting itself off, so that RAN returned the last "
        "healthy alternation."
    )
    round_trips: int = Field(
        description="How often a database was waited for; 0 for an index in a folder."
    )


class QueriesResponse(BaseModel):
    """An answer for each query, in their order."""

    answers: list[QueryResponse]


class Match(BaseModel):
    """A point that was found by words."""

    id: Id
    score: float = Field(description="Of BM25; it compares results of the same words.")
    payload: dict[str, Value]


class CountResponse(BaseModel):
    """How many points meet a condition."""

    count: int


class FindResponse(BaseModel):
    """Points that hold some of the words, best first."""

    results: list[Match]


class ReturnedDocument(BaseModel):
    """A document that was sent."""

    text: str


class RerankResult(BaseModel):
    """A candidate and its score."""

    index: int = Field(description="The place among the documents or ids that were sent, from 0.")
    relevance_score: float = Field(
        description="By which results are in order; it compares candidates of the same request."
    )
    id: Id | None = Field(description="Of the point, where ids were sent; else null.")
    document: ReturnedDocument | None = Field(
        description="The text that was sent, with `return_documents`; else null."
    )


class RerankResponse(BaseModel):
    """Candidates, best first."""

    model: Literal["ran"]
    results: list[RerankResult]


class PathStep(BaseModel):
    """One edge of a path, away from the query."""

    start: Id | None = Field(description="Null for an unseen vector of the query.")
    end: Id
    weight: float
    factor: float
    score: float
    end_place: int | None = Field(
        description="Place of `end` among the nearest neighbours of `start`; null where it is not "
        "one of them."
    )
    start_place: int | None = Field(description="That of `start` among those of `end`.")


class StrongestPath(BaseModel):
    """The strongest path from the query to the point."""

    example: int
    start_score: float | None
    steps: list[PathStep]
    carried: float
    share: float | None


class ExampleShare(BaseModel):
    """One example of the query, and its part in the score."""

    point: Id | None = Field(description="Null for an unseen vector.")
    weight: float
    amount: float
    share: float | None


class ExplainResponse(BaseModel):
    """Why a point has its place; places count from 1."""

    method: str
    point: Id
    n_ranked: int
    distance: float
    distance_rank: int
    score: float
    score_rank: int
    shape: float = Field(description="The score by shape alone, to which path and examples add up.")
    fused: FusionDetails | None = Field(
        description="How `shape` became `score`; null where distance was not fused with it."
    )
    shift: int = Field(description="Places that the method moved it up from plain distance.")
    examples: list[ExampleShare]
    path: StrongestPath | None
    path_state: str
    n_visited: int
    first_graph: bool
    text: str = Field(description="All of it in words.")


class Point(BaseModel):
    """A point of the index."""

    id: Id
    payload: dict[str, Value]
    vector: list[float] | None = None
    image: str | None = Field(default=None, description="A data URI.")


class PointsResponse(BaseModel):
    """Points in the order in which they were asked for."""

    points: list[Point]


class Changed(BaseModel):
    """A change that is on disk."""

    ids: list[Id]
    points: int = Field(description="How many the index has now.")


class MapResponse(BaseModel):
    """Where points are drawn."""

    ids: list[Id]
    places: str = Field(description="x and y of every id: little-endian float32, in base64.")
    values: list[Value] | None = Field(description="Of the column that was asked for.")
    points: int = Field(description="How many the index has; the map may show some of them.")
    layout: str = Field(description="How it was drawn: graph, shape, pca or plane.")
    version: str


class Limits(BaseModel):
    """The most that requests may ask for."""

    queries: int = MOST_QUERIES
    top: int = MOST_RESULTS
    offset: int = MOST_SKIPPED
    examples: int = MOST_EXAMPLES
    points: int = MOST_POINTS
    n_neighbors: int = MOST_NEIGHBORS
    max_iter: int = MOST_ALTERNATIONS


class PictureFormat(BaseModel):
    """How vectors are pictures: pixels row by row, grey or red, green and blue."""

    width: int
    height: int
    colour: bool
    white: float | None = Field(
        description="Value of white; the largest of each vector where null."
    )


class LearnedGraph(BaseModel):
    """The graph that RAN starts from, where a query does not ask for the plain one."""

    n_neighbors: int
    rounds: int = Field(description="That made it; 0 where the plain graph was kept.")
    reach: float = Field(
        description="How many points queries reach on it, relative to the plain graph."
    )
    not_learned: int = Field(description="Points with plain neighbours, such as new ones.")


class EmbedderFacts(BaseModel):
    """What makes vectors of texts."""

    name: str | None = Field(description="Null for a function of whoever serves the index.")
    column: str | None = Field(description="Of the payload, where texts are kept.")


class Info(BaseModel):
    """What there is to know about an index."""

    name: str
    points: int
    features: int
    metric: str
    n_neighbors: int
    list_width: int
    columns: dict[str, str]
    text_columns: list[str] = Field(description="Those in which words can be found.")
    embedder: EmbedderFacts | None = Field(
        description="What makes vectors of texts; null where nothing does."
    )
    layout: str | None = Field(description="Of the map that is kept; null where none is.")
    learned: LearnedGraph | None = Field(description="Null where none was learned.")
    image: PictureFormat | None
    query: Id | None = Field(description="A point to begin with, where one was named at build.")
    example: bool
    writable: bool
    version: str
    methods: list[str]
    limits: Limits


class Infos(BaseModel):
    """All indexes."""

    indexes: list[Info]
    unavailable: list[str] = Field(
        description="Names of indexes whose database does not answer at the moment."
    )


class Health(BaseModel):
    """That the service answers."""

    status: Literal["ok"]
    version: str


class PiecewiseResponse(JSONResponse):
    """An answer that is written as JSON in pieces, so that other threads take turns.

    It would take half a second in one piece, which holds the interpreter, where a request asks for
    as much as it may.

    Examples
    --------
    >>> PiecewiseResponse({"points": [{"id": 1}, {"id": 2}], "version": "1.0"}).body
    b'{"points":[{"id":1},{"id":2}],"version":"1.0"}'
    """

    def render(self, content: Any) -> bytes:
        """Return the answer as JSON."""
        if not isinstance(content, dict):
            return self._written(content)
        fields = (
            self._written(name) + b":" + b"".join(self._pieces(value))
            for name, value in content.items()
        )
        return b"{" + b",".join(fields) + b"}"

    def _pieces(self, value: Any) -> Iterator[bytes]:
        if not isinstance(value, list) or not value:
            yield self._written(value)
            return
        step = 1 if isinstance(value[0], dict | list) else PIECE
        for start in range(0, len(value), step):
            yield b"," if start else b"["
            yield self._written(value[start : start + step])[1:-1]
        yield b"]"

    def _written(self, value: Any) -> bytes:
        return bytes(super().render(value))

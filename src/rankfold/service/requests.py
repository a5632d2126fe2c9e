"""Bodies of requests, as pydantic models, and their limits."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictInt,
    StrictStr,
    model_validator,
)

from rankfold.check import HEAVIEST_DISTANCE
from rankfold.methods import Method

MOST_QUERIES, MOST_EXAMPLES, MOST_POINTS = 64, 1000, 1000
MOST_RESULTS, MOST_SKIPPED = 2000, 10_000
MOST_NEIGHBORS, MOST_ALTERNATIONS, MOST_STEPS, MOST_POWER = 200, 20, 1000, 100
MOST_MAPPED, MOST_BUDGET = 100_000, 1_000_000
LONGEST_CONDITION, LONGEST_NAME, MOST_COLUMNS = 2000, 1000, 500
LONGEST_TEXT, LONGEST_WORDS = 100_000, 2000
MOST_FEATURES = 100_000

LIGHT_QUERIES, LIGHT_EXAMPLES, LIGHT_RESULTS, LIGHT_BUDGET = 8, 20, 200, 10_000
"""Up to so many queries, each of so many examples, results and points with a score, are light."""

FEW = 20
"""Unknown fields that are named one by one; millions of errors would take minutes to tell."""

Whole = Annotated[StrictInt, Field(ge=-(2**63), le=2**63 - 1)]
Text = Annotated[StrictStr, Field(min_length=1, max_length=LONGEST_NAME)]
Id = Whole | Text
Number = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Vector = Annotated[list[Number], Field(fail_fast=True, min_length=1, max_length=MOST_FEATURES)]
Value = StrictBool | Whole | Number | StrictStr | None

ColumnNames = Annotated[list[Text], Field(fail_fast=True, max_length=MOST_COLUMNS)]
Some = Annotated[list[Id], Field(fail_fast=True, min_length=1, max_length=MOST_POINTS)]
Budget = Literal["auto", "proven"] | Annotated[StrictInt, Field(ge=1, le=MOST_BUDGET)]
Fusion = (
    Literal["auto", "none", "reciprocal_rank"]
    | Annotated[Number, Field(ge=0, le=HEAVIEST_DISTANCE)]
)
Sentence = Annotated[StrictStr, Field(min_length=1, max_length=LONGEST_TEXT)]
Words = Annotated[StrictStr, Field(min_length=1, max_length=LONGEST_WORDS)]
Share = Annotated[Number, Field(gt=0, lt=1)]


def _few_columns(payload: Any) -> Any:
    """Require few columns before any is looked at, which `max_length` alone does not."""
    if isinstance(payload, dict) and len(payload) > MOST_COLUMNS:
        raise ValueError(f"there are {len(payload)} columns, but may be up to {MOST_COLUMNS}")
    return payload


Payload = Annotated[
    dict[Text, Value], BeforeValidator(_few_columns), Field(max_length=MOST_COLUMNS)
]


class Body(BaseModel):
    """Something in a request: a field that is not known is an error, not silence."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _few_unknown(cls, fields: Any) -> Any:
        if isinstance(fields, dict) and len(fields) > len(cls.model_fields) + FEW:
            known = ", ".join(cls.model_fields)
            raise ValueError(f"there are {len(fields)} fields, but only these: {known}")
        return fields


class Parameters(Body):
    """Parameters of the method; what is left out has its default."""

    n_neighbors: Annotated[StrictInt, Field(ge=1, le=MOST_NEIGHBORS)] | None = Field(
        default=None,
        description="Neighbours in the graph: RAN, LCDP and tensor-product diffusion; of a point "
        "or a query: LHRR and query expansion.",
    )
    smoothness: Annotated[Number, Field(gt=0, le=1e6)] | None = Field(
        default=None, description="How much alike the scores of neighbours should be: RAN."
    )
    max_iter: Annotated[StrictInt, Field(ge=1, le=MOST_ALTERNATIONS)] | None = Field(
        default=None, description="Most alternations of graph and scores: RAN."
    )
    tol: Annotated[Number, Field(ge=1e-12, le=1)] | None = Field(
        default=None, description="Where solving may end: RAN, PageRank and manifold ranking."
    )
    budget: Budget | None = Field(
        default=None,
        description="How many points of an index of more than 5,000 may get a score: 1,000, or 20 "
        "for each result (auto, the default), so many (a number), or as many as it takes until the "
        "best are proven (proven): RAN, PageRank and manifold ranking. For a proof plain distance "
        "looks at every point, and else in an index of them.",
    )
    fusion: Fusion | None = Field(
        default=None,
        description="How plain distance shares in the score: in a blend in which near points stay "
        "ahead (auto, the default of RAN), not at all (none, that of the others), by adding "
        "reciprocal ranks (reciprocal_rank), or in a blend with this weight of distance (a number "
        "from 0, shape alone, to 100, nearly distance alone): all methods but plain distance.",
    )
    gamma: Literal["own", "shared"] | None = Field(default=None, description="RAN.")
    candidates: Literal["all", "local"] | None = Field(default=None, description="RAN.")
    adapt: Literal["query", "collective"] | None = Field(
        default=None,
        description="The graph to start from, the plain one (query) or the one that the index has "
        "learned for all queries (collective), which is the default where there is one: RAN.",
    )
    guard: StrictBool | None = Field(
        default=None, description="Whether to stop at a collapse: RAN."
    )
    alpha: Annotated[Number, Field(ge=0, le=MOST_POWER)] | None = Field(
        default=None,
        description="Weight of the graph, up to 1: PageRank, manifold ranking, tensor diffusion; "
        "power of the similarity: query expansion.",
    )
    n_steps: Annotated[StrictInt, Field(ge=1, le=MOST_STEPS)] | None = Field(
        default=None, description="Steps of a diffusion, or of LHRR."
    )
    laziness: Annotated[Number, Field(ge=0, lt=1)] | None = Field(
        default=None, description="LCDP and tensor-product diffusion."
    )
    k1: Annotated[StrictInt, Field(ge=1, le=MOST_NEIGHBORS)] | None = Field(
        default=None, description="Neighbours that encode a point: k-reciprocal re-ranking."
    )
    k2: Annotated[StrictInt, Field(ge=1, le=MOST_NEIGHBORS)] | None = Field(
        default=None, description="Encodings that are averaged: k-reciprocal re-ranking."
    )
    distance_weight: Annotated[Number, Field(ge=0, le=1)] | None = Field(
        default=None, description="Share of plain distance: k-reciprocal re-ranking."
    )
    augment: Annotated[StrictInt, Field(ge=0, le=MOST_NEIGHBORS)] | None = Field(
        default=None,
        description="Neighbours that every point is averaged with: query expansion.",
    )

    def arguments(self) -> dict[str, Any]:
        """Return those that were given, as `Index.query` takes them."""
        given = self.model_dump(exclude_none=True)
        return {**given, "budget": None} if self.budget == "proven" else given


class QueryRequest(Body):
    """What is asked for: at least one of `ids`, `vectors` and `text`."""

    ids: Annotated[list[Id], Field(fail_fast=True, max_length=MOST_EXAMPLES)] = Field(
        default_factory=list, description="Points that serve as examples."
    )
    vectors: Annotated[list[Vector], Field(fail_fast=True, max_length=MOST_EXAMPLES)] = Field(
        default_factory=list, description="Examples that are not in the index."
    )
    weights: Annotated[list[Number], Field(fail_fast=True, max_length=2 * MOST_EXAMPLES)] | None = (
        Field(
            default=None,
            description="How much each example counts, ids first, then vectors, then the text; "
            "above zero.",
        )
    )
    text: Sentence | None = Field(
        default=None,
        description="An example in words, where the index has an embedder that makes vectors of "
        "them.",
    )
    words: Words | None = Field(
        default=None,
        description="Words to look for in the payload. What has them, what is near and what the "
        "method ranks first are then three lists, fused by reciprocal ranks.",
    )
    negative: Annotated[list[Id], Field(fail_fast=True, max_length=MOST_EXAMPLES)] = Field(
        default_factory=list, description="Points unlike what is looked for."
    )
    negative_vectors: Annotated[list[Vector], Field(fail_fast=True, max_length=MOST_EXAMPLES)] = (
        Field(default_factory=list, description="Such examples that are not in the index.")
    )
    where: Annotated[StrictStr, Field(max_length=LONGEST_CONDITION)] | None = Field(
        default=None, description="A condition on payload, such as `price < 10 and not sold`."
    )
    top: Annotated[StrictInt, Field(ge=1, le=MOST_RESULTS)] = 10
    offset: Annotated[StrictInt, Field(ge=0, le=MOST_SKIPPED)] = Field(
        default=0, description="Results to skip before."
    )
    diversity: Annotated[Number, Field(ge=0, le=1)] = Field(
        default=0.0,
        description="From 0, as ranked, to 1, as unlike each other as can be (MMR).",
    )
    method: Method = "ran"
    parameters: Parameters = Field(default_factory=Parameters)
    include_query: StrictBool = Field(
        default=False, description="Whether points of the query may be results."
    )
    min_score: Number | None = Field(
        default=None,
        description="The least score of a result; `proven` says of which results that is proven, "
        "`complete` whether it is that no other point scores as much.",
    )
    group_by: Text | None = Field(
        default=None, description="A column of which results have no value too often."
    )
    per_group: Annotated[StrictInt, Field(ge=1, le=MOST_RESULTS)] = Field(
        default=1, description="How often, with `group_by`."
    )
    columns: ColumnNames | None = Field(
        default=None, description="Columns of payload to return: all where null, none where empty."
    )

    @property
    def is_light(self) -> bool:
        """Whether it is solved by the default method, within a small budget."""
        given, budget = self.parameters.model_fields_set, self.parameters.budget
        n_ids, n_vectors = len(self.ids + self.negative), len(self.vectors + self.negative_vectors)
        return (
            self.method in ("ran", "distance")
            and given <= {"budget", "fusion"}
            and (budget in (None, "auto") or (isinstance(budget, int) and budget <= LIGHT_BUDGET))
            and n_ids + n_vectors <= LIGHT_EXAMPLES
            and self.top + self.offset <= LIGHT_RESULTS
            and self.where is None
            and self.text is None  # how long an embedder takes is not known
            and self.words is None
            and self.group_by is None
        )

    def _groups(self) -> dict[str, Any]:
        if self.group_by is None:
            return {}
        return {"group_by": self.group_by, "per_group": self.per_group}

    def arguments(self) -> dict[str, Any]:
        """Return it as arguments of `Index.query`."""
        return {
            "ids": self.ids or None,
            "vectors": self.vectors or None,
            "weights": self.weights,
            "negative": self.negative or None,
            "negative_vectors": self.negative_vectors or None,
            "where": self.where,
            "top": self.top,
            "offset": self.offset,
            "diversity": self.diversity,
            "method": self.method,
            "include_query": self.include_query,
            **({} if self.text is None else {"text": self.text}),
            **({} if self.words is None else {"words": self.words}),
            **({} if self.min_score is None else {"min_score": self.min_score}),
            **self._groups(),
            **self.parameters.arguments(),
        }


class QueriesRequest(Body):
    """Queries that are answered one after the other."""

    queries: Annotated[
        list[QueryRequest], Field(fail_fast=True, min_length=1, max_length=MOST_QUERIES)
    ]

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"queries": [{"ids": [0], "top": 5}]}]}
    )

    @property
    def is_light(self) -> bool:
        """Whether this takes little time whatever the index, once its graph is there."""
        return len(self.queries) <= LIGHT_QUERIES and all(one.is_light for one in self.queries)


class FindRequest(Body):
    """Words to look for in the texts of the payload."""

    words: Words = Field(
        description='Words, "phrases in quotes", and beginnings of words such as `che*`. Points '
        "that hold any of them are found."
    )
    text_columns: Annotated[list[Text], Field(min_length=1, max_length=MOST_COLUMNS)] | None = (
        Field(default=None, description="Where to look; in all texts where null.")
    )
    where: Annotated[StrictStr, Field(max_length=LONGEST_CONDITION)] | None = Field(
        default=None, description="A condition on payload, such as `price < 10 and not sold`."
    )
    top: Annotated[StrictInt, Field(ge=1, le=MOST_RESULTS)] = 10
    offset: Annotated[StrictInt, Field(ge=0, le=MOST_SKIPPED)] = Field(
        default=0, description="Results to skip before."
    )
    columns: ColumnNames | None = Field(
        default=None, description="Columns of payload to return: all where null, none where empty."
    )

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"words": "chess"}]})


class CountRequest(Body):
    """Points to count."""

    where: Annotated[StrictStr, Field(max_length=LONGEST_CONDITION)] | None = Field(
        default=None, description="A condition on payload; all points where null."
    )


class ScrollRequest(CountRequest):
    """Points to list, in the order of their ids: numbers, then texts."""

    after: Id | None = Field(default=None, description="The last id that was seen.")
    top: Annotated[StrictInt, Field(ge=1, le=MOST_POINTS)] = 100
    columns: ColumnNames | None = Field(
        default=None, description="Columns of payload to return: all where null, none where empty."
    )
    vectors: StrictBool = Field(default=False, description="Whether to return vectors.")


class ExplainRequest(Body):
    """Why a point has its place in the answer to a query."""

    query: QueryRequest
    id: Id

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"query": {"ids": [0]}, "id": 1}]}
    )


class RerankDocument(Body):
    """A document as an object, in the place of its text alone."""

    text: Sentence


class RerankRequest(Body):
    """Candidates to put in order for a query: either `documents` or `ids`."""

    query: Sentence | Vector = Field(
        description="A text, where the index has an embedder; or a vector."
    )
    documents: (
        Annotated[
            list[Sentence | RerankDocument],
            Field(fail_fast=True, min_length=1, max_length=MOST_POINTS),
        ]
        | None
    ) = Field(default=None, description="Texts, of which the embedder of the index makes vectors.")
    ids: Some | None = Field(default=None, description="Points of the index, in their place.")
    top_n: Annotated[StrictInt, Field(ge=1)] | None = Field(
        default=None, description="How many results; all candidates where null."
    )
    return_documents: StrictBool = Field(
        default=False, description="Whether results repeat the texts that were sent."
    )
    model: Literal["ran"] = Field(
        default="ran", description="What ranks; clients of other services send such a field."
    )

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"query": [0.0, 1.0], "ids": [0, 1, 2], "top_n": 2}]},
    )

    @model_validator(mode="after")
    def _one_kind(self) -> RerankRequest:
        if (self.documents is None) == (self.ids is None):
            raise ValueError("give the candidates either as documents or as ids")
        return self

    @property
    def texts(self) -> list[str]:
        """The texts of the documents."""
        return [
            one.text if isinstance(one, RerankDocument) else one for one in self.documents or ()
        ]


class LookupRequest(Body):
    """Points to look up."""

    ids: Some
    columns: ColumnNames | None = Field(
        default=None, description="All where null, none where empty."
    )
    vectors: StrictBool = Field(default=False, description="Whether to return vectors.")
    images: StrictBool = Field(
        default=False, description="Whether to return pictures, as data URIs."
    )


class NewPoint(Body):
    """A point to add."""

    id: Id | None = Field(
        default=None,
        description="May be left out, of all points, where the index numbers its points.",
    )
    vector: Vector | None = Field(
        default=None, description="May be left out, of all points, where they have a text."
    )
    text: Sentence | None = Field(
        default=None,
        description="Of which the embedder of the index makes the vector, in its place.",
    )
    payload: Payload = Field(default_factory=dict)


class AddRequest(Body):
    """Points to add, all or none of them."""

    points: Annotated[list[NewPoint], Field(fail_fast=True, min_length=1, max_length=MOST_POINTS)]


class ChangedPoint(Body):
    """A point of the index with another vector, another payload, or both."""

    id: Id
    vector: Vector | None = None
    text: Sentence | None = Field(
        default=None,
        description="Of which the embedder of the index makes another vector.",
    )
    payload: Payload = Field(default_factory=dict)


class ChangeRequest(Body):
    """Points to change, all or none of them; all with a vector or all without."""

    points: Annotated[
        list[ChangedPoint], Field(fail_fast=True, min_length=1, max_length=MOST_POINTS)
    ]


class RemoveRequest(Body):
    """Points to remove, all or none of them."""

    ids: Some

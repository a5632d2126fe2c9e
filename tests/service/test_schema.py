"""The description keeps its word, whatever is sent: real requests made from it by schemathesis."""

import os
from itertools import chain

import pytest
import schemathesis
from effort import examples
from hypothesis import HealthCheck, given, seed
from hypothesis import strategies as st
from running_service import BEARER, KEY, running
from schemathesis import GenerationMode
from schemathesis.checks import CHECKS, load_all_checks

from rankfold import Index
from rankfold.service import Settings, create_app

# As a service that runs does: answers say whether they have settled.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

N_EXAMPLES = int(os.environ.get("RANKFOLD_SCHEMA_EXAMPLES", "15"))
"""Requests of each kind for each operation; by hand, set it to a thousand."""

N_POINTS = 40
NAMES = ["points", "unmapped", "two-moons", "three-rings"]
CONDITIONS = [None, "colour = 'red'", "price < 10 and not sold", "price is null", "nothing = 1"]
FITTING = {
    "vector": st.lists(st.floats(-100, 100), min_size=2, max_size=2),
    "id": st.one_of(st.integers(0, N_POINTS), st.sampled_from(["a", "b"])),
    "where": st.sampled_from(CONDITIONS),
    "column": st.sampled_from(["price", "colour", "sold"]),
    "payload": st.fixed_dictionaries(
        {},
        optional={
            "price": st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)),
            "colour": st.one_of(st.none(), st.text(max_size=5)),
            "sold": st.one_of(st.none(), st.booleans()),
        },
    ),
}
NEW = {"id": st.integers(N_POINTS, 10**9)}
LISTS = {"vectors": "vector", "negative_vectors": "vector", "ids": "id", "negative": "id"}
LISTS["columns"] = "column"
LOOSE = ("positive_data_acceptance",)
"""Left out: a body that the schema allows may still name a point that is not there."""

OPERATIONS = [
    ("GET", "/health"),
    ("GET", "/metrics"),
    ("GET", "/v1/indexes"),
    ("GET", "/v1/indexes/{name}"),
    ("GET", "/v1/indexes/{name}/map"),
    ("POST", "/v1/indexes/{name}/query"),
    ("POST", "/v1/indexes/{name}/rerank"),
    ("POST", "/v1/indexes/{name}/find"),
    ("POST", "/v1/indexes/{name}/count"),
    ("POST", "/v1/indexes/{name}/scroll"),
    ("POST", "/v1/indexes/{name}/explain"),
    ("POST", "/v1/indexes/{name}/points"),
    ("POST", "/v1/indexes/{name}/add"),
    ("POST", "/v1/indexes/{name}/update"),
    ("POST", "/v1/indexes/{name}/remove"),
]
WRITES = ("add", "update", "remove")
VALID = {
    "query": {"queries": [{"ids": [1]}]},
    "rerank": {"query": [0.0, 1.0], "ids": [1, 2, 3]},
    "find": {"words": "red"},
    "count": {},
    "scroll": {},
    "explain": {"query": {"ids": [1]}, "id": 2},
    "points": {"ids": [1]},
    "add": {"points": [{"vector": [0.0, 0.0]}]},
    "update": {"points": [{"id": 3, "payload": {"price": 1}}]},
    "remove": {"ids": [N_POINTS - 1]},
}
"""Bodies that are answered by 200, if they may be."""


def build(layout="pca"):
    X = [[i % 7, i / 3] for i in range(N_POINTS)]
    payload = {
        "price": list(range(N_POINTS)),
        "colour": ["red", "blue"] * (N_POINTS // 2),
        "sold": [True, None] * (N_POINTS // 2),
    }
    return Index.build(X, payload=payload, layout=layout, n_neighbors=4)


KEYS = ["with a key", pytest.param("without a key", marks=pytest.mark.slow)]


@pytest.fixture(scope="module", params=KEYS)
def service(request):
    """Return a client of a service over an index that may be spoilt, and the schema."""
    key = KEY if request.param == "with a key" else None
    with (
        build() as index,
        build("none") as unmapped,
        running(
            create_app({"points": index, "unmapped": unmapped}, Settings(api_key=key))
        ) as client,
    ):
        client.headers = BEARER if key else {}
        config = schemathesis.Config.from_dict({"generation": {"with-security-parameters": False}})
        address = f"{client.base_url}/openapi.json"
        schema = schemathesis.openapi.from_url(address, config=config)
        yield client, schema


def fitted(draw, sent, known):
    """Return what was sent with vectors, ids and columns that may well fit the index."""
    if isinstance(sent, list):
        return [fitted(draw, one, known) for one in sent]
    if not isinstance(sent, dict):
        return sent
    whole = {}
    for name, value in sent.items():
        if name in known and value is not None:
            whole[name] = draw(known[name])
        elif name in LISTS and isinstance(value, list):
            whole[name] = [draw(known[LISTS[name]]) for _ in value[:5]]
        elif name == "weights" and value is not None:
            whole[name] = [draw(st.floats(0.01, 10)) for _ in value]
        else:
            whole[name] = fitted(draw, value, known)
    return whole


@st.composite
def requests(draw, operation, kind):
    """Make a request that follows the schema ("positive"), breaks it, or may fit the index."""
    mode = GenerationMode.NEGATIVE if kind == "negative" else GenerationMode.POSITIVE
    case = draw(operation.as_strategy(generation_mode=mode))
    if "name" in case.path_parameters and draw(st.integers(0, 9)):
        case.path_parameters["name"] = draw(st.sampled_from(NAMES))
    if kind == "fitting":
        known = FITTING | NEW if operation.path.endswith("/add") else FITTING
        case.body = fitted(draw, case.body, known)
        if "column" in case.query:
            case.query["column"] = draw(FITTING["column"])
    return case


def can_be_broken(operation):
    return any(chain(operation.query, operation.body))


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_answers_are_as_described(service, method, path):
    client, schema = service
    operation = schema[path][method]
    load_all_checks()
    headers = dict(client.headers)
    loose = LOOSE if "authorization" in headers else (*LOOSE, "ignored_auth")
    checks = [CHECKS.get_one(name) for name in CHECKS.get_all_names() if name not in loose]
    statuses = set()
    kinds = ["positive", "fitting"] + ["negative"] * can_be_broken(operation)

    @seed(0)
    @examples(
        N_EXAMPLES * len(kinds),
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.sampled_from(kinds).flatmap(lambda kind: requests(operation, kind)))
    def ask(case):
        response = case.call(base_url=str(client.base_url), headers=headers)
        statuses.add(response.status_code)
        case.validate_response(response, checks=checks, headers=headers)

    body = {"body": VALID[verb]} if (verb := path.rpartition("/")[2]) in VALID else {}
    valid = operation.Case(path_parameters={"name": "points"} if "{name}" in path else {}, **body)
    response = valid.call(base_url=str(client.base_url), headers=headers)
    valid.validate_response(response, checks=checks, headers=headers)
    refused = "authorization" not in headers and path.endswith(WRITES)
    assert response.status_code == (403 if refused else 200)
    ask()
    assert 500 not in statuses


def test_all_operations_are_described(service):
    _, schema = service
    raw = schema.raw_schema
    described = {(m.upper(), path) for path, methods in raw["paths"].items() for m in methods}
    assert described == set(OPERATIONS)
    assert "HTTPValidationError" not in str(raw)
    for path, methods in raw["paths"].items():
        for operation in methods.values():
            kinds = {
                kind
                for status, answer in operation["responses"].items()
                if not status.startswith("2")
                for kind in answer["content"]
            }
            assert kinds == {"application/problem+json"}, path

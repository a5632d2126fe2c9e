"""Every error is a problem that names the field, and tells nothing of the inside."""

import asyncio
import json

import pytest
from guarded_service import JSON, asking, guarded
from pydantic import ValidationError

from rankfold.service.requests import AddRequest, QueriesRequest

FACTS = {"type", "title", "status", "detail", "errors", "request_id"}


def answer(method, path, **options):
    async def ask():
        app, _ = guarded()
        async with asking(app) as client:
            return await client.request(method, path, **options)

    response = asyncio.run(ask())
    assert response.headers["Content-Type"] == "application/problem+json"
    problem = response.json()
    assert set(problem) == FACTS
    assert ("Retry-After" in response.headers) == (response.status_code == 503)
    assert problem["status"] == response.status_code
    assert problem["request_id"] == response.headers["X-Request-ID"]
    return problem


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"items": [{"name": "a"}, {"name": "b", "top": "x"}]}, "items[1].top"),
        ({"items": [{"name": "a"}, {"name": "b", "top": 0}]}, "items[1].top"),
        ({"items": [{"name": [1]}]}, "items[0].name"),
        ({"items": [{"name": "odd"}]}, "items[0]"),
        ({"items": [{}]}, "items[0].name"),
        ({"items": {"a": 1}}, "items"),
        ({}, "items"),
        ([], "body"),
    ],
)
def test_the_field_is_named(body, field):
    problem = answer("POST", "/items", content=json.dumps(body), headers=JSON)
    assert problem["status"] == 422
    assert [error["field"] for error in problem["errors"]] == [field]
    assert problem["errors"][0]["message"] in problem["detail"]


@pytest.mark.parametrize(
    "change",
    [
        {"ids": ["\ud800"]},
        {"negative": ["\ud800"]},
        {"where": "digit = 1 and id = '\ud800'"},
        {"where": "`\ud800` = 1"},
        {"where": "\ud800"},
        {"method": "\ud800"},
        {"parameters": {"gamma": "\ud800"}},
        {"parameters": {"\ud800": 1}},
        {"columns": ["\ud800"]},
        {"\ud800": 1},
    ],
)
def test_half_a_character_is_no_error_of_ours(client, change):
    body = json.dumps({"queries": [{"ids": [1], **change}]})
    response = client.post("/v1/indexes/digits/query", content=body, headers=JSON)
    assert response.status_code == 422
    (error,) = response.json()["errors"]
    assert error["field"].startswith("queries[0]")


def test_parameters_of_the_address_are_named():
    problem = answer("POST", "/items?limit=x", json={"items": []})
    assert [error["field"] for error in problem["errors"]] == ["limit"]


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"{", 422),
        (b'{"items": nul}', 422),
        (b"", 422),
        (b'"\xff"', 400),
        (b"[" * 60_000, 400),
        (b"[" + b"9" * 10_000 + b"]", 400),
    ],
)
def test_what_is_no_json_is_refused(content, status):
    assert answer("POST", "/items", content=content, headers=JSON)["status"] == status


def test_little_of_what_was_sent_comes_back():
    body = {"items": [{"name": "a", "top": "secret" * 1000}] * 100, "x" * 10_000: 1}
    problem = answer("POST", "/items", json=body)
    assert "secret" not in json.dumps(problem)
    assert len(json.dumps(problem)) < 10_000
    assert len(problem["errors"]) == 20


@pytest.mark.parametrize(
    ("model", "body"),
    [
        (QueriesRequest, {"queries": [{"vectors": [["x"] * 100] * 1000}] * 64}),
        (QueriesRequest, {"queries": [{"ids": [None] * 1000, "negative": [None] * 1000}] * 64}),
        (QueriesRequest, {"queries": [{f"x{i}": 1 for i in range(10_000)}]}),
        (
            QueriesRequest,
            {"queries": [{"ids": [1], "parameters": {f"x{i}": 1 for i in range(10_000)}}]},
        ),
        (AddRequest, {"points": [{"payload": {f"x{i}": [] for i in range(10_000)}}] * 1000}),
        (AddRequest, {"points": [{"payload": {f"x{i}": [] for i in range(20)}}] * 1000}),
    ],
)
def test_a_body_full_of_errors_makes_few(model, body):
    # Millions of errors, one for each wrong value, would take minutes and gigabytes.
    with pytest.raises(ValidationError) as caught:
        model.model_validate(body)
    assert caught.value.error_count() <= 120


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/nothing", 404), ("DELETE", "/health", 405), ("GET", "/fail/input", 422)],
)
def test_other_refusals(method, path, status):
    problem = answer(method, path)
    assert problem["status"] == status
    assert len(problem["detail"].split()) > 3


@pytest.mark.parametrize(("kind", "status"), [("bug", 500), ("late", 500), ("storage", 503)])
def test_the_inside_is_told_to_the_log_alone(caplog, kind, status):
    problem = answer("GET", f"/fail/{kind}")
    assert problem["status"] == status
    assert "secret" not in json.dumps(problem)
    (record,) = [record for record in caplog.records if record.levelname == "ERROR"]
    assert record.name == "rankfold.service"
    assert "secret" in str(record.exc_info[1])
    assert record.request_id == problem["request_id"]


def test_a_single_query_is_to_be_put_into_a_list(client):
    said = client.post("/v1/indexes/two-moons/query", json={"ids": [3], "limit": 2})
    assert said.status_code == 422
    told = {error["field"]: error["message"] for error in said.json()["errors"]}
    assert told["queries"] == 'send a list, even for a single query: {"queries": [{...}]}'
    assert told["limit"].endswith("What is called 'limit' elsewhere is 'top' here.")

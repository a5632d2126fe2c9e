"""Requests that the documentation shows, with the answers that it shows."""

import json
import re
from pathlib import Path

import pytest
from running_service import running

from rankfold import Index
from rankfold.service import create_app

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def all_digits(digits):
    with (
        Index.build(digits.X, payload={"digit": digits.labels}) as index,
        running(create_app({"digits": index})) as client,
    ):
        yield client


def blocks(page):
    return re.findall(r"^```json\n(.*?)^```$", (ROOT / page).read_text(), re.DOTALL | re.MULTILINE)


def test_the_docs_show_what_is_answered(all_digits):
    (request,) = re.findall(r"-d '(\{\"queries.*?\})'", (ROOT / "docs/serving.md").read_text())
    (shown,) = (block for block in blocks("docs/serving.md") if '"answers"' in block)
    answer = all_digits.post("/v1/indexes/digits/query", json=json.loads(request)).json()
    (one,), (other,) = json.loads(shown)["answers"], answer["answers"]
    for expected, found in zip(one.pop("results"), other.pop("results"), strict=True):
        for part in ("score", "shape", "distance"):
            assert found.pop(part) == pytest.approx(expected.pop(part), abs=5e-5)
        assert found == expected
    for part in ("horizon", "hubness"):
        assert other["fused"].pop(part) == pytest.approx(one["fused"].pop(part), abs=5e-5)
    assert other.pop("bound") < 10 * one.pop("bound")
    assert one == other


def test_the_docs_show_a_whole_query(all_digits):
    request = next(block for block in blocks("docs/serving.md") if '"queries"' in block)
    asked = json.loads(request)
    response = all_digits.post("/v1/indexes/digits/query", json=asked)
    assert response.status_code == 200
    assert len(response.json()["answers"][0]["results"]) == 10
    known = all_digits.get("/openapi.json").json()["components"]["schemas"]["QueryRequest"][
        "properties"
    ]
    assert asked["queries"][0].keys() == known.keys()


def test_the_docs_show_what_can_be_reranked():
    (request,) = re.findall(r"-d '(\{\"query\".*?\})'", (ROOT / "docs/serving.md").read_text())

    def lengths(texts):
        return [[1.0, len(text)] for text in texts]

    with (
        Index.build(texts=["chess", "go", "mail"], embedder=lengths) as index,
        running(create_app({"notes": index})) as client,
    ):
        asked = json.loads(request)
        response = client.post("/v1/indexes/notes/rerank", json=asked)
        assert response.status_code == 200
        assert len(response.json()["results"]) == asked["top_n"]

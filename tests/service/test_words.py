"""Texts and words over HTTP."""

import numpy as np
import pytest
from running_service import BEARER, KEY, running

from rankfold import RAN, Index
from rankfold.service import Settings, create_app

NOTES = ["a chess engine", "undo in an image editor", "a board game", "mail in a terminal"]


def letters(texts):
    alphabet = "abcdefghijklmnopqrstuvwxyz"
    return np.array([[1 + text.lower().count(one) for one in alphabet] for text in texts])


@pytest.fixture
def post():
    """Return a function that posts to an index of notes, and returns the JSON of the answer."""
    payload = {"year": [1, 2, 3, 4]}
    with (
        Index.build(texts=NOTES, payload=payload, embedder=letters) as index,
        running(create_app({"notes": index}, Settings(api_key=KEY))) as client,
    ):

        def post(verb, body, status=200):
            path = f"/v1/indexes/notes{f'/{verb}' if verb else ''}"
            response = (
                client.get(path, headers=BEARER)
                if body is None
                else client.post(path, json=body, headers=BEARER)
            )
            assert response.status_code == status, response.text
            return response.json()

        yield post


def test_words_are_found(post):
    known = post("", None)
    assert known["text_columns"] == ["text"]
    assert known["embedder"] == {"name": None, "column": "text"}
    found = post("find", {"words": "che* board", "columns": ["year"]})["results"]
    assert [one["id"] for one in found] == [0, 2]
    assert found[0]["payload"] == {"year": 1}
    assert found[0]["score"] >= found[1]["score"] > 0
    only = post("find", {"words": "a", "where": "year > 2", "top": 1, "text_columns": ["text"]})
    assert only["results"][0]["id"] in (2, 3)


def test_texts_are_asked_with_and_fused_with_words(post):
    (answer,) = post("query", {"queries": [{"text": NOTES[1], "method": "distance", "top": 1}]})[
        "answers"
    ]
    assert [one["id"] for one in answer["results"]] == [1]
    assert answer["results"][0]["lists"] is None
    (answer,) = post("query", {"queries": [{"text": "game", "words": "board", "top": 4}]})[
        "answers"
    ]
    first = answer["results"][0]
    assert first["id"] == 2
    assert first["lists"]["words"] == {
        "rank": 1,
        "score": pytest.approx(0.86, abs=0.5),
        "share": 1 / 61,
    }
    assert first["score"] == pytest.approx(sum(one["share"] for one in first["lists"].values()))
    reason = post("explain", {"query": {"text": "game"}, "id": 0})
    assert reason["point"] == 0


def test_points_come_and_change_as_texts(post):
    added = post("add", {"points": [{"text": "a game of go", "payload": {"year": 5}}]})
    assert added["ids"] == [4]
    assert post("find", {"words": "go"})["results"][0]["id"] == 4
    post("update", {"points": [{"id": 4, "text": "backgammon"}]})
    assert post("find", {"words": "go"})["results"] == []
    asked = {"queries": [{"text": "backgammon", "method": "distance", "top": 1}]}
    assert post("query", asked)["answers"][0]["results"][0]["id"] == 4


def test_counts_pages_thresholds_and_groups(post):
    assert post("count", {})["count"] == 4
    assert post("count", {"where": "year > 2"})["count"] == 2
    page = post("scroll", {"top": 3, "columns": ["year"], "vectors": True})["points"]
    assert [one["id"] for one in page] == [0, 1, 2]
    assert page[0]["payload"] == {"year": 1}
    assert len(page[0]["vector"]) == 26
    rest = post("scroll", {"after": 2, "where": "year > 0"})["points"]
    assert [one["id"] for one in rest] == [3]
    asked = {"ids": [0], "method": "distance", "min_score": 0.0, "top": 10}
    (answer,) = post("query", {"queries": [asked]})["answers"]
    assert answer["complete"] is True
    assert [one["proven"] for one in answer["results"]] == [True] * 3
    assert all(0 < one["score"] <= 1 for one in answer["results"])  # cosine similarities
    (grouped,) = post("query", {"queries": [{"ids": [0], "group_by": "year"}]})["answers"]
    assert len(grouped["results"]) == 3
    assert grouped["complete"] is None


@pytest.mark.parametrize(
    ("verb", "body", "field"),
    [
        ("count", {"where": "x = 1"}, "where"),
        ("scroll", {"after": 0.5}, "after"),
        ("query", {"queries": [{"ids": [0], "group_by": "x"}]}, "queries[0].group_by"),
        ("query", {"queries": [{"ids": [0], "limit": 3}]}, "queries[0].limit"),
        ("find", {"words": "--"}, "words"),
        ("find", {"words": ""}, "words"),
        ("find", {"words": "a", "text_columns": ["year"]}, "text_columns"),
        ("find", {"words": "a", "columns": ["x"]}, "columns"),
        ("find", {"words": "a", "where": "x = 1"}, "where"),
        ("query", {"queries": [{"text": " "}]}, "queries[0].text"),
        ("query", {"queries": [{"ids": [0], "words": "?"}]}, "queries[0].words"),
        ("add", {"points": [{"text": "a", "vector": [1.0] * 26}]}, "points"),
        ("add", {"points": [{"text": "a"}, {"vector": [1.0] * 26}]}, "points"),
    ],
)
def test_errors_name_the_field(post, verb, body, field):
    problem = post(verb, body, 422)
    assert problem["errors"][0]["field"].startswith(field)
    assert field != "queries[0].limit" or "is 'top' here" in problem["detail"]


def test_a_model_that_does_not_work_is_no_fault_of_the_client(tmp_path, monkeypatch):
    pytest.importorskip("openai")
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with Index.build(letters(NOTES), embedder=letters) as built:
        built.save(tmp_path / "notes")
    with (
        Index.open(tmp_path / "notes", embedder="openai:text-embedding-3-small") as index,
        running(create_app({"notes": index})) as client,
    ):
        monkeypatch.setenv("OPENAI_BASE_URL", f"{client.base_url}/nothing/v1")  # answers 404
        response = client.post("/v1/indexes/notes/query", json={"queries": [{"text": "chess"}]})
        assert response.status_code == 503
        assert "vectors of texts" in response.json()["detail"]
        assert client.post("/v1/indexes/notes/query", json={"queries": [{"ids": [0]}]}).is_success


CANDIDATES = ["chess openings", "a terminal for mail", "an editor of images", "board games"]


def test_texts_are_put_in_order_as_the_embedder_sees_them(post):
    asked = {"query": "games on a board", "documents": CANDIDATES}
    answer = post("rerank", asked)
    expected = RAN(metric="cosine").fit(letters(CANDIDATES))
    ranking = expected.rank(vectors=letters([asked["query"]])[0])
    found = answer["results"]
    assert answer["model"] == "ran"
    assert [one["index"] for one in found] == ranking.indices.tolist()
    np.testing.assert_allclose([one["relevance_score"] for one in found], ranking.scores)
    assert all(one["id"] is None and one["document"] is None for one in found)
    objects = [{"text": text} for text in CANDIDATES]
    shown = post("rerank", asked | {"documents": objects, "top_n": 2, "return_documents": True})
    assert [one["index"] for one in shown["results"]] == ranking.indices.tolist()[:2]
    assert shown["results"][0]["document"] == {"text": CANDIDATES[ranking.indices[0]]}


def test_points_are_put_in_order_for_a_text(post):
    found = post("rerank", {"query": NOTES[2], "ids": [3, 2, 0], "top_n": 9})["results"]
    assert len(found) == 3
    assert (found[0]["index"], found[0]["id"]) == (1, 2)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"query": "a"}, "body"),
        ({"query": "a", "ids": [1], "documents": ["b"]}, "body"),
        ({"query": "a", "documents": []}, "documents"),
        ({"query": "a", "ids": [99]}, "ids"),
        ({"query": [1.0, 2.0], "ids": [1, 2]}, "query"),
        ({"query": "a", "ids": [1], "top_n": 0}, "top_n"),
        ({"query": "a", "ids": [1], "model": "another"}, "model"),
    ],
)
def test_what_cannot_be_put_in_order(post, body, field):
    (error, *_) = post("rerank", body, status=422)["errors"]
    assert error["field"].startswith(field)

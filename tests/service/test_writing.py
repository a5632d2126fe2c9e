"""Changes over HTTP: who may make them, and that they are there."""

import numpy as np
import pytest
from running_service import BEARER, KEY, running

from rankfold import Index
from rankfold.service import Settings, create_app

WAYS = {
    "add": {"points": [{"vector": [0.0] * 64}]},
    "update": {"points": [{"id": 1, "payload": {"digit": 7}}]},
    "remove": {"ids": [1]},
}
ZERO = {"vector": [0.0] * 64}


@pytest.fixture
def folder(tmp_path, digits):
    Index.build(digits.X[:50], payload={"digit": digits.labels[:50]}, path=tmp_path / "d").close()
    return tmp_path / "d"


@pytest.fixture
def change(folder):
    """Return a function that changes an index over HTTP, and returns the JSON of the answer."""
    with (
        Index.open(folder, write=True) as index,
        running(create_app({"d": index}, Settings(api_key=KEY))) as client,
    ):

        def post(verb, body, status=200):
            response = client.post(f"/v1/indexes/d/{verb}", json=body, headers=BEARER)
            assert response.status_code == status, response.text
            return response.json()

        yield post


def test_points_come_change_and_go(change, folder, digits):
    new = [{"vector": row.tolist(), "payload": {"digit": 9}} for row in digits.X[50:52]]
    assert change("add", {"points": new}) == {"ids": [50, 51], "points": 52}
    assert change("remove", {"ids": [0, 51]}) == {"ids": [0, 51], "points": 50}
    described = [{"id": 50, "payload": {"digit": 3}}, {"id": 7, "payload": {"digit": None}}]
    assert change("update", {"points": described}) == {"ids": [50, 7], "points": 50}
    moved = [{"id": 50, "vector": digits.X[60].tolist()}]
    assert change("update", {"points": moved}) == {"ids": [50], "points": 50}
    with Index.open(folder) as other:  # what was answered is on disk
        assert len(other) == 50
        assert 0 not in other
        assert other.payload([50, 7]) == {"digit": [3, None]}
        np.testing.assert_array_equal(other.vectors([50]), digits.X[60:61])


def test_points_with_ids_of_their_own(change, digits):
    point = {"id": "new", "vector": digits.X[50].tolist()}
    assert change("add", {"points": [point]})["ids"] == ["new"]
    problem = change("add", {"points": [point]}, status=422)
    assert "'new'" in problem["detail"]
    found = change("query", {"queries": [{"ids": ["new"], "top": 1}]})
    assert found["answers"][0]["results"][0]["id"] != "new"


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("verb", "body", "field"),
    [
        ("add", {"points": []}, "points"),
        ("add", {"points": [{"payload": {}}]}, "points"),
        ("add", {"points": [{"vector": [1.0]}]}, "points[0].vector"),
        ("add", {"points": [ZERO, {"vector": [0.0] * 63}]}, "points[1].vector"),
        ("add", {"points": [ZERO | {"id": 60}, ZERO | {"id": 60}]}, "points[1].id"),
        ("add", {"points": [ZERO | {"id": 60}, ZERO | {"id": 7}]}, "points[1].id"),
        ("add", {"points": [ZERO, ZERO | {"payload": {"digit": True}}]}, "points[1].payload.digit"),
        ("add", {"points": [{"vector": [0.0] * 64}, {"id": 99, "vector": [0.0] * 64}]}, "points"),
        ("add", {"points": [{"vector": [0.0] * 64, "payload": {"digit": [1]}}]}, None),
        (
            "add",
            {"points": [{"vector": [0.0] * 64, "payload": {"digit": "x"}}]},
            "points[0].payload.digit",
        ),
        (
            "add",
            {"points": [{"vector": [0.0] * 64, "payload": {"new": 1}}]},
            "points[0].payload.new",
        ),
        ("update", {"points": [{"id": 99, "payload": {"digit": 1}}]}, "points[0].id"),
        ("update", {"points": [{"id": 1}, {"id": 1}]}, "points[1].id"),
        ("update", {"points": [{"id": 1, "vector": [1.0]}]}, "points[0].vector"),
        ("update", {"points": [{"id": 1, "payload": {"x": 1}}]}, "points[0].payload.x"),
        ("update", {"points": [{"id": 1, "payload": {"x": 1}}, {"id": 2}]}, "points"),
        ("update", {"points": [{"id": 1, "vector": [0.0] * 64}, {"id": 2}]}, "points"),
        ("remove", {"ids": []}, "ids"),
        ("remove", {"ids": [1, 99]}, "ids[1]"),
        ("remove", {"ids": [1, 1]}, "ids[1]"),
    ],
)
def test_a_change_that_cannot_be_made_changes_nothing(change, folder, verb, body, field):
    problem = change(verb, body, status=422)
    assert problem["errors"]
    if field is not None:
        assert problem["errors"][0]["field"] == field
    with Index.open(folder) as other:
        assert other.ids == list(range(50))
        assert other.info()["pending_changes"] == 0


def test_a_wrong_vector_says_how_long_it_should_be(change):
    problem = change("add", {"points": [ZERO, {"vector": [0.0] * 63}]}, status=422)
    assert problem["detail"] == "the vector has 63 numbers, but those of the index have 64."


def test_a_vector_without_direction_is_named():
    built = Index.build([[1.0, 2.0], [2.0, 1.0], [1.0, 1.0]], metric="cosine")
    with built as index, running(create_app({"c": index}, Settings(api_key=KEY))) as client:
        body = {"points": [{"vector": [1.0, 0.0]}, {"vector": [0.0, 0.0]}]}
        response = client.post("/v1/indexes/c/add", json=body, headers=BEARER)
    assert response.status_code == 422
    assert response.json()["errors"][0]["field"] == "points[1].vector"


@pytest.mark.parametrize("verb", WAYS)
def test_nobody_writes_without_a_key(client, verb):
    response = client.post(f"/v1/indexes/digits/{verb}", json=WAYS[verb])
    assert response.status_code == 403
    assert "RANKFOLD_API_KEY" in response.json()["detail"]


@pytest.mark.parametrize("verb", WAYS)
def test_the_examples_stay_as_they_are(index, verb):
    with running(create_app({"digits": index}, Settings(api_key=KEY))) as client:
        body = WAYS[verb]
        response = client.post(f"/v1/indexes/two-moons/{verb}", json=body, headers=BEARER)
    assert response.status_code == 403
    assert "reading only" in response.json()["detail"]

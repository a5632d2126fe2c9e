"""Answers over HTTP are those of the index."""

from base64 import b64decode

import numpy as np
import pytest
from running_service import running

from rankfold import Index
from rankfold.datasets.synthetic import rings
from rankfold.errors import InputError
from rankfold.methods import METHODS
from rankfold.rankers import RANKERS
from rankfold.service import create_app, handlers
from rankfold.service.handlers import Served, answer_all, draw, look_up
from rankfold.service.requests import LookupRequest, QueryRequest
from rankfold.service.responses import Info

VECTOR = [float(value) for value in range(64)]
MODES = {
    "a point": {"ids": [1]},
    "a point with a name": {"ids": ["d0"], "top": 3},
    "points with weights": {"ids": [1, "d5"], "weights": [2.0, 1.0]},
    "a vector": {"vectors": [VECTOR]},
    "both": {"ids": [7], "vectors": [VECTOR], "weights": [1.0, 0.5]},
    "negative": {"ids": [1], "negative": ["d10"], "negative_vectors": [VECTOR]},
    "condition": {"ids": [1], "where": "digit = 1 and not even"},
    "a later page": {"ids": [1], "offset": 20, "top": 5},
    "diverse": {"ids": [1], "diversity": 0.5},
    "with the query": {"ids": [1], "include_query": True},
}
PARAMETERS = {
    "ran": {"n_neighbors": 8, "smoothness": 3.0, "gamma": "shared", "candidates": "local"},
    "distance": {},
    "self_diffusion": {"n_steps": 20},
    "pagerank": {"alpha": 0.9, "tol": 1e-6},
    "manifold": {"alpha": 0.9},
    "transduction": {"n_steps": 30},
    "lcdp": {"laziness": 0.1, "n_neighbors": 4},
    "tensor": {"alpha": 0.9, "n_steps": 10},
    "k_reciprocal": {"k1": 8, "k2": 3, "distance_weight": 0.1},
    "lhrr": {"n_neighbors": 8, "n_steps": 1},
    "query_expansion": {"n_neighbors": 4, "alpha": 2.0, "augment": 3},
}


def same(answer, results):
    assert [result["id"] for result in answer["results"]] == results.ids
    assert [result["score"] for result in answer["results"]] == results.scores.tolist()
    rows = [row["payload"] for row in results.rows()]
    assert [result["payload"] for result in answer["results"]] == rows
    solution = results.ranking.solution
    for row, result in zip(results.rows(), answer["results"], strict=True):
        assert (result["shape"], result["distance"]) == (row.get("shape"), row.get("distance"))
    assert answer["fused"] == (None if solution.fused is None else solution.fused._asdict())
    assert answer["bound"] == solution.bound
    assert answer["certified"] == solution.certified
    assert answer["converged"] == solution.converged
    assert answer["solver"] == solution.solver
    assert answer["stopped"] == solution.stopped
    assert answer["touched"] == solution.n_touched


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_answers_as_the_index_does(ask, index, mode):
    query = MODES[mode]
    (answer,) = ask("query", {"queries": [query]})["answers"]
    assert answer["results"]
    same(answer, index.query(**query))


@pytest.mark.parametrize("method", PARAMETERS)
def test_every_method_takes_its_parameters(ask, index, method):
    parameters = PARAMETERS[method]
    query = {"ids": [3], "method": method, "parameters": parameters}
    (answer,) = ask("query", {"queries": [query]})["answers"]
    assert answer["method"] == method
    same(answer, index.query(3, method=method, **parameters))


@pytest.mark.parametrize("method", ["ran", "pagerank", "manifold"])
def test_a_budget_ends_a_query_and_proven_goes_on(ask, index, monkeypatch, method):
    monkeypatch.setattr("rankfold.solvers.DIRECT_LIMIT", 100)
    budgets = {"so many": 20, "auto": "auto", "left out": None, "proven": "proven"}
    plain = {"tol": 1e-8, "fusion": "none"}  # fused answers are chosen among 500 points: all
    queries = [
        {"ids": [3], "top": 2, "method": method, "parameters": {"budget": one, **plain}}
        for one in budgets.values()
    ]
    answers = ask("query", {"queries": queries})["answers"]
    early, auto, left_out, proven = answers
    assert {answer["solver"] for answer in answers} == {"region"}
    assert (early["stopped"], early["certified"], early["converged"]) == ("budget", False, True)
    assert (proven["stopped"], proven["certified"]) == ("proven", True)
    assert early["touched"] < proven["touched"]
    assert auto == left_out
    same(early, index.query(3, top=2, method=method, budget=20, **plain))
    same(proven, index.query(3, top=2, method=method, budget=None, **plain))


def test_a_wrong_budget_is_told_what_it_can_be(ask):
    query = {"ids": [1], "parameters": {"budget": "all"}}
    (error,) = ask("query", {"queries": [query]}, status=422)["errors"]
    assert "'auto' or 'proven'" in error["message"]
    assert "integer" in error["message"]


def test_reasons_are_given_for_a_proven_answer(ask, index):
    query = {"ids": [1], "parameters": {"budget": "proven"}}
    reason = ask("explain", {"query": query, "id": 7})
    assert reason["text"] == index.query(1, budget=None).explain(7).to_text()


FUSIONS = {
    "auto": "blend",
    "none": None,
    "reciprocal_rank": "reciprocal_rank",
    0: None,
    2.5: "blend",
}


@pytest.mark.parametrize("method", ["ran", "pagerank", "lcdp"])
@pytest.mark.parametrize("fusion", FUSIONS)
def test_every_fusion_says_what_it_fused(ask, index, method, fusion):
    query = {"ids": [3], "method": method, "parameters": {"fusion": fusion}}
    (answer,) = ask("query", {"queries": [query]})["answers"]
    results = index.query(3, method=method, fusion=fusion)
    same(answer, results)
    kind = FUSIONS[fusion]
    parts = [(result["shape"], result["distance"]) for result in answer["results"]]
    reason = ask("explain", {"query": query, "id": results.ids[4]})
    assert reason["fused"] == answer["fused"]
    assert reason["score"] == pytest.approx(results.scores[4])
    if kind is None:
        assert answer["fused"] is None
        assert set(parts) == {(None, None)}
        assert reason["shape"] == reason["score"]
        return
    assert answer["fused"]["kind"] == kind
    assert (reason["shape"], reason["distance"]) == pytest.approx(parts[4])


def test_ran_is_fused_where_nothing_is_said_and_other_methods_are_not(ask):
    queries = [{"ids": [3], "method": method} for method in METHODS]
    answers = ask("query", {"queries": queries})["answers"]
    fused = {answer["method"]: answer["fused"] for answer in answers}
    assert fused.pop("ran")["kind"] == "blend"
    assert set(fused.values()) == {None}


def test_a_wrong_fusion_is_told_what_it_can_be(ask):
    query = {"ids": [1], "parameters": {"fusion": "all"}}
    (error,) = ask("query", {"queries": [query]}, status=422)["errors"]
    assert "'auto', 'none' or 'reciprocal_rank'" in error["message"]
    assert "number" in error["message"]


def test_a_learned_graph_is_told_of_and_used(tmp_path):
    X = rings().X
    with Index.build(X, path=tmp_path / "rings") as index:
        served = Served("rings", index, example=False, writable=False)
        assert Info(**served.info()).learned is None
        (plain,) = answer_all(served, [QueryRequest(ids=[3])])
        problem = QueryRequest(ids=[3], parameters={"adapt": "collective"})
        with pytest.raises(InputError, match="has not learned") as refused:
            answer_all(served, [problem])
        assert refused.value.argument == "queries[0].parameters.adapt"
        index.learn()
        told = Info(**served.info()).learned
        assert told is not None
        assert told.model_dump() == index.info()["learned"]
        chosen = [{}, {"adapt": "collective"}, {"adapt": "query"}]
        answers = answer_all(served, [QueryRequest(ids=[3], parameters=one) for one in chosen])
        same(answers[0], index.query(3))
        assert answers[1] == answers[0] != plain
        assert answers[2] == plain


def test_methods_of_requests_are_those_of_the_library():
    assert set(METHODS) == set(RANKERS) == set(PARAMETERS)


def test_a_batch_is_its_queries_one_by_one(ask):
    queries = [*MODES.values()]
    together = ask("query", {"queries": queries})["answers"]
    assert together == [ask("query", {"queries": [one]})["answers"][0] for one in queries]


def test_columns_can_be_chosen(ask):
    queries = [{"ids": [1], "columns": columns} for columns in ([], ["even"])]
    none, one = ask("query", {"queries": queries})["answers"]
    assert {tuple(result["payload"]) for result in none["results"]} == {()}
    assert {tuple(result["payload"]) for result in one["results"]} == {("even",)}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"ids": [99999]}, "ids"),
        ({"ids": ["1"]}, "ids"),
        ({"ids": [True]}, "ids[0]"),
        ({"negative": ["nobody"]}, "negative"),
        ({"vectors": [[1.0, 2.0]]}, "vectors"),
        ({"vectors": [VECTOR, VECTOR[:-1]]}, "vectors"),
        ({"negative_vectors": [[1.0]]}, "negative_vectors"),
        ({"weights": [1.0, 2.0]}, "weights"),
        ({"weights": [0.0]}, "weights"),
        ({"where": "digit <"}, "where"),
        ({"where": "colour = 'red'"}, "where"),
        ({"top": 0}, "top"),
        ({"top": 2001}, "top"),
        ({"top": "5"}, "top"),
        ({"offset": -1}, "offset"),
        ({"diversity": 1.5}, "diversity"),
        ({"method": "magic"}, "method"),
        ({"columns": ["colour"]}, "columns"),
        ({"parameters": {"alpha": 0.5}}, "parameters.alpha"),
        ({"parameters": {"smoothness": -1}}, "parameters.smoothness"),
        ({"parameters": {"budget": 0}}, "parameters.budget"),
        ({"parameters": {"budget": 1_000_001}}, "parameters.budget"),
        ({"parameters": {"budget": 2.5}}, "parameters.budget"),
        ({"parameters": {"budget": True}}, "parameters.budget"),
        ({"parameters": {"budget": "10"}}, "parameters.budget"),
        ({"parameters": {"budget": "none"}}, "parameters.budget"),
        ({"method": "lcdp", "parameters": {"budget": "proven"}}, "parameters.budget"),
        ({"parameters": {"fusion": "both"}}, "parameters.fusion"),
        ({"parameters": {"fusion": -0.5}}, "parameters.fusion"),
        ({"parameters": {"fusion": 100.5}}, "parameters.fusion"),
        ({"parameters": {"fusion": True}}, "parameters.fusion"),
        ({"parameters": {"fusion": "4"}}, "parameters.fusion"),
        ({"method": "distance", "parameters": {"fusion": "none"}}, "parameters.fusion"),
        ({"parameters": {"adapt": "both"}}, "parameters.adapt"),
        ({"parameters": {"adapt": "collective"}}, "parameters.adapt"),
        ({"parameters": {"n_neighbors": 201}}, "parameters.n_neighbors"),
        ({"method": "manifold", "parameters": {"alpha": 1.0}}, "parameters.alpha"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_an_error_names_its_field(ask, change, field):
    problem = ask("query", {"queries": [{"ids": [1]}, {"ids": [1], **change}]}, status=422)
    assert problem["status"] == 422
    assert [error["field"] for error in problem["errors"]] == [f"queries[1].{field}"]
    assert problem["errors"][0]["message"] in problem["detail"]


def test_a_parameter_at_the_wrong_place_is_told_its_place(ask):
    problem = ask("query", {"queries": [{"ids": [1], "smoothness": 3}]}, status=422)
    assert problem["errors"][0]["field"] == "queries[0].smoothness"
    assert "'parameters': {'smoothness': ...}" in problem["errors"][0]["message"]


def test_a_query_needs_an_example(ask):
    problem = ask("query", {"queries": [{"negative": [1]}]}, status=422)
    assert "no example" in problem["detail"]
    assert problem["errors"][0]["field"] == "queries[0]"


@pytest.mark.parametrize("body", [{}, {"queries": []}, {"queries": [{"ids": [1]}] * 65}, [], None])
def test_there_are_at_least_one_and_at_most_64_queries(ask, body):
    assert ask("query", body, status=422)["errors"]


def test_neighbours_beyond_the_lists_of_many_points_are_refused(monkeypatch, ask):
    monkeypatch.setattr("rankfold.service.handlers.EXACT_LIMIT", 100)
    fine = {"ids": [1], "parameters": {"n_neighbors": 10}}
    ask("query", {"queries": [fine]})
    problem = ask("query", {"queries": [{"ids": [1], "parameters": {"n_neighbors": 11}}]}, 422)
    assert problem["errors"][0]["field"] == "queries[0].parameters.n_neighbors"
    assert "up to 10" in problem["detail"]


def test_reasons_are_those_of_the_index(ask, index):
    results = index.query(1, negative=3)
    point = results.ids[4]
    answer = ask("explain", {"query": {"ids": [1], "negative": [3]}, "id": point})
    reason = results.explain(point)
    assert answer.pop("text") == reason.to_text()
    assert answer == reason.to_dict()
    assert answer["path"]["steps"][-1]["end"] == point


@pytest.mark.parametrize(
    ("query", "point", "field"),
    [
        ({"ids": [1]}, 1, "id"),
        ({"ids": [1]}, "nobody", "id"),
        ({"ids": ["nobody"]}, 1, "query.ids"),
        ({"ids": [1], "top": -1}, 2, "query.top"),
    ],
)
def test_questions_are_checked(ask, query, point, field):
    problem = ask("explain", {"query": query, "id": point}, status=422)
    assert problem["errors"][0]["field"] == field


def test_points_are_looked_up(ask, index, digits):
    body = {"ids": ["d10", 3], "vectors": True, "images": True}
    first, second = ask("points", body)["points"]
    assert first["id"] == "d10"
    assert second["payload"] == {"digit": 3, "even": False}
    np.testing.assert_array_equal(first["vector"], digits.X[10])
    assert first["image"].startswith("data:image/png;base64,")
    bare = ask("points", {"ids": [3], "columns": ["even"]})
    assert bare == {"points": [{"id": 3, "payload": {"even": False}}]}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"ids": ["nobody"]}, "ids"),
        ({"ids": []}, "ids"),
        ({"ids": [1], "columns": ["x"]}, "columns"),
        ({"ids": [1], "vectors": 1}, "vectors"),
    ],
)
def test_lookups_are_checked(ask, body, field):
    assert ask("points", body, status=422)["errors"][0]["field"] == field


def test_the_map_holds_every_point(client, index):
    drawn = client.get("/v1/indexes/digits/map?column=digit").json()
    ids, places = index.places()
    assert drawn["ids"] == ids
    np.testing.assert_array_equal(unpacked(drawn), places)
    assert drawn["values"] == index.payload(ids)["digit"]
    assert drawn["points"] == 500
    assert drawn["layout"] == index.info()["layout"]


def test_a_map_can_hold_some_points(client, index):
    drawn = client.get("/v1/indexes/digits/map?limit=50").json()
    ids, places = index.places()
    rows = [ids.index(one) for one in drawn["ids"]]
    assert len(rows) == len(set(rows)) == 50
    assert (rows[0], rows[-1]) == (0, 499)
    np.testing.assert_array_equal(unpacked(drawn), places[rows])
    assert drawn["values"] is None
    assert drawn["points"] == 500


@pytest.fixture
def pair(tmp_path, digits):
    """Return an index that changes, and the same one as others read it."""
    path = tmp_path / "i"
    payload = {"digit": digits.labels[:50]}
    Index.build(digits.X[:50], payload=payload, path=path, layout="none").close()
    with Index.open(path, write=True) as writer, Index.open(path) as reader:
        yield writer, reader


def then(function, change):
    """Return a function after which something else has changed."""

    def changed(*given):
        found = function(*given)
        change()
        return found

    return changed


def test_a_map_is_of_one_state(pair, monkeypatch):
    writer, reader = pair
    monkeypatch.setattr(reader, "places", then(reader.places, lambda: writer.remove(7)))
    drawn = draw(Served("i", reader, False, False), "digit", 100)
    assert drawn["ids"] == list(range(50))
    assert len(drawn["values"]) == drawn["points"] == 50
    assert reader.ids == writer.ids != drawn["ids"]


def test_points_are_of_one_state(pair, monkeypatch, digits):
    writer, reader = pair

    def change():
        writer.update(7, digits.X[50:51], {"digit": [99]})

    monkeypatch.setattr(reader, "vectors", then(reader.vectors, change))
    (point,) = look_up(Served("i", reader, False, False), LookupRequest(ids=[7], vectors=True))[
        "points"
    ]
    assert (point["payload"], point["vector"]) == ({"digit": 7}, digits.X[7].tolist())
    assert reader.payload([7]) == {"digit": [99]}


def test_a_map_that_is_not_kept_says_how_it_was_drawn(pair):
    _, reader = pair
    assert reader.layout is None
    assert draw(Served("i", reader, False, False), None, 100)["layout"] == "pca"
    with Index.build([[0.0, 1.0], [1.0, 2.0], [3.0, 4.0]], layout="none") as flat:
        assert draw(Served("flat", flat, False, False), None, 100)["layout"] == "plane"


def unpacked(drawn):
    return np.frombuffer(b64decode(drawn["places"]), dtype="<f4").reshape(-1, 2)


@pytest.mark.parametrize(
    ("search", "field"),
    [("column=x", "column"), ("limit=0", "limit"), ("limit=100001", "limit"), ("limit=x", "limit")],
)
def test_what_is_asked_of_a_map_is_checked(client, search, field):
    response = client.get(f"/v1/indexes/digits/map?{search}")
    assert response.status_code == 422
    assert response.json()["errors"][0]["field"] == field


def test_the_examples_need_no_data(client):
    infos = client.get("/v1/indexes").json()["indexes"]
    assert [info["name"] for info in infos] == ["digits", "two-moons", "three-rings"]
    assert [info["example"] for info in infos] == [False, True, True]
    assert [info["layout"] for info in infos[1:]] == ["plane", "plane"]
    body = {"queries": [{"ids": [0], "top": 199}, {"ids": [0], "top": 199, "method": "distance"}]}
    shape, plain = client.post("/v1/indexes/two-moons/query", json=body).json()["answers"]
    moons = [{result["payload"]["moon"] for result in one["results"]} for one in (shape, plain)]
    assert [len(found) for found in moons] == [1, 2]


def test_an_index_tells_what_clients_may_know(client, index):
    info = client.get("/v1/indexes/digits").json()
    assert info["points"] == 500
    assert info["columns"] == {"digit": "integer", "even": "boolean"}
    assert info["image"] == {"width": 8, "height": 8, "colour": False, "white": 16.0}
    assert info["query"] is None
    assert info["writable"] is False
    assert index.info()["path"] not in client.get("/v1/indexes/digits").text


@pytest.mark.parametrize("path", ["/", "/health", "/page/main.js"])
def test_headers_alone_can_be_asked_for(client, path):
    whole, head = client.get(path), client.head(path)
    assert (head.status_code, head.content) == (200, b"")
    for name in ("Content-Type", "Content-Length"):
        assert head.headers[name] == whole.headers[name]


def test_an_unknown_index_is_not_there(client):
    for response in (
        client.get("/v1/indexes/nothing"),
        client.post("/v1/indexes/nothing/query", json={"queries": [{"ids": [1]}]}),
    ):
        assert response.status_code == 404
        assert response.headers["content-type"] == "application/problem+json"
        assert "digits, two-moons, three-rings" in response.json()["detail"]


def test_an_index_cannot_take_the_name_of_an_example(index):
    with pytest.raises(InputError, match="'two-moons' is the name of an example"):
        create_app({"two-moons": index})


@pytest.mark.parametrize(("named", "told"), [(3, 3), ("d5", "d5"), (5, None), ([3], None)])
def test_an_index_can_name_a_point_to_begin_with(digits, named, told):
    ids = ["d5" if row == 5 else row for row in range(20)]
    with (
        Index.build(digits.X[:20], ids, source={"query": named}) as index,
        running(create_app({"digits": index})) as client,
    ):
        assert client.get("/v1/indexes/digits").json()["query"] == told


@pytest.fixture(scope="module")
def texts():
    """Return a client of an index of twenty points with a text of 100 characters each."""
    X, payload = np.eye(20), {"text": ["word " * 20] * 20, "number": range(20)}
    with Index.build(X, payload=payload) as index, running(create_app({"texts": index})) as client:
        yield client


@pytest.mark.parametrize(
    ("verb", "body", "field"),
    [
        ("query", {"queries": [{"ids": [1], "top": 5}, {"ids": [2], "top": 6}]}, "queries[1]"),
        ("find", {"words": "word", "top": 11}, None),
        ("scroll", {"top": 11}, None),
        ("points", {"ids": list(range(11))}, None),
    ],
)
def test_an_answer_holds_only_so_much_payload(texts, monkeypatch, verb, body, field):
    path = f"/v1/indexes/texts/{verb}"
    monkeypatch.setattr(handlers, "MOST_CHARACTERS", 1100)
    assert texts.post(path, json=body).status_code == 200
    monkeypatch.setattr(handlers, "MOST_CHARACTERS", 1000)
    refused = texts.post(path, json=body)
    assert refused.status_code == 422
    assert "more than 1,000 characters of payload; name the columns" in refused.json()["detail"]
    assert [error["field"] for error in refused.json()["errors"]] == ([field] if field else [])
    if verb != "query":
        assert texts.post(path, json={**body, "columns": ["number"]}).status_code == 200


def test_a_map_holds_only_so_much_of_a_column(texts, monkeypatch):
    monkeypatch.setattr(handlers, "COUNTED_AT_ONCE", 3)
    monkeypatch.setattr(handlers, "MOST_CHARACTERS", 1000)
    asked = "/v1/indexes/texts/map?column="
    assert texts.get(f"{asked}number").json()["values"] == list(range(20))
    refused = texts.get(f"{asked}text")
    assert refused.status_code == 422
    assert refused.json()["errors"][0]["field"] == "column"


@pytest.mark.parametrize(("verb", "body"), [("scroll", {"top": 3}), ("points", {"ids": [1, 2, 3]})])
def test_an_answer_holds_only_so_many_vectors(texts, monkeypatch, verb, body):
    monkeypatch.setattr(handlers, "MOST_NUMBERS", 59)
    path = f"/v1/indexes/texts/{verb}"
    assert texts.post(path, json=body).status_code == 200
    refused = texts.post(path, json={**body, "vectors": True})
    assert refused.status_code == 422
    assert "vectors of 3 points, but may hold those of 2" in refused.json()["detail"]
    monkeypatch.setattr(handlers, "MOST_NUMBERS", 60)
    found = texts.post(path, json={**body, "vectors": True}).json()
    assert [len(point["vector"]) for point in found["points"]] == [20] * 3

"""Services that share a database: a real PostgreSQL, which also goes away and comes back."""

from contextlib import ExitStack
from uuid import uuid4

import pytest
import writing_clients as writers
from databases.servers import PostgreSQLServer
from running_service import BEARER, KEY, running
from serving import serving

from rankfold import Index
from rankfold.databases.checking import verify
from rankfold.databases.postgresql import PostgreSQL
from rankfold.service import Settings, create_app, served

N_CLIENTS = 4


@pytest.fixture(scope="module")
def server():
    """Return a server of its own, since it is stopped meanwhile."""
    started = PostgreSQLServer()
    yield started
    started.remove()


@pytest.fixture
def engine(server):
    """Return the address of a database in which nothing is."""
    name = f"services_{uuid4().hex}"
    server.run(f"CREATE DATABASE {name}")
    yield server.address(name)
    server.run(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def pair(engine, digits):
    """Return clients of two services over one index of digits 0 to 199."""
    payload = {"digit": digits.labels[:200]}
    Index.build(digits.X[:200], payload=payload, path="digits", engine=engine).close()
    with ExitStack() as stack:
        clients = []
        for _ in range(2):
            index = stack.enter_context(Index.open("digits", write=True, engine=engine))
            app = create_app({"digits": index}, Settings(api_key=KEY))
            clients.append(stack.enter_context(running(app)))
            clients[-1].headers.update(BEARER)
        yield clients


def post(client, verb, body, status=200):
    response = client.post(f"/v1/indexes/digits/{verb}", json=body)
    assert response.status_code == status, response.text
    return response.json()


def ask(client, status=200, **query):
    return post(client, "query", {"queries": [query]}, status)


def test_each_sees_at_once_what_the_other_changes(pair, digits):
    one, other = pair
    versions = [other.get("/v1/indexes/digits").json()["version"]]
    new = {"id": 900, "vector": (digits.X[7] + 0.25).tolist(), "payload": {"digit": 3}}
    assert post(one, "add", {"points": [new]}) == {"ids": [900], "points": 201}
    (answer,) = ask(other, ids=[7], top=5)["answers"]
    assert 900 in [result["id"] for result in answer["results"]]
    assert 900 in other.get("/v1/indexes/digits/map").json()["ids"]
    versions.append(other.get("/v1/indexes/digits").json()["version"])
    assert post(other, "update", {"points": [{"id": 900, "payload": {"digit": 5}}]})
    (point,) = post(one, "points", {"ids": [900]})["points"]
    assert point["payload"] == {"digit": 5}
    assert post(other, "remove", {"ids": [900]})["points"] == 200
    assert "900" in ask(one, 422, ids=[900])["detail"]
    (answer,) = ask(one, ids=[7], top=5)["answers"]
    assert 900 not in [result["id"] for result in answer["results"]]
    versions.append(one.get("/v1/indexes/digits").json()["version"])
    assert len(set(versions)) == 3


def test_answers_are_those_of_a_folder(pair, digits):
    body = {"ids": [7, 9], "negative": [3], "where": "digit != 4", "top": 20}
    with Index.build(digits.X[:200], payload={"digit": digits.labels[:200]}) as index:
        expected = index.query([7, 9], negative=3, where="digit != 4", top=20)
        (answer,) = ask(pair[0], **body)["answers"]
        assert [result["id"] for result in answer["results"]] == expected.ids
        reason = post(pair[0], "explain", {"query": {"ids": [7]}, "id": 9})
        assert reason["text"] == index.query(7).explain(9).to_text()
    assert answer["round_trips"] > 0


def test_limits_are_told_and_kept(pair, monkeypatch):
    known = pair[0].get("/v1/indexes/digits").json()
    most = known["limits"]["n_neighbors"]
    assert (most, known["limits"]["max_iter"]) == (known["list_width"] - 1, 1)
    assert ask(pair[0], ids=[7], parameters={"n_neighbors": most})
    assert (
        f"up to {most} "
        in ask(pair[0], 422, ids=[7], parameters={"n_neighbors": most + 1})["detail"]
    )
    problem = ask(pair[0], 422, ids=[7], parameters={"max_iter": 2})
    assert problem["errors"][0]["field"] == "queries[0].parameters.max_iter"
    assert ask(pair[0], ids=[7], method="pagerank")
    monkeypatch.setattr(served, "EXACT_LIMIT", 199)
    assert pair[0].get("/v1/indexes/digits").json()["methods"] == ["ran", "euclidean"]
    problem = ask(pair[0], 422, ids=[7], method="pagerank")
    assert problem["errors"][0]["field"] == "queries[0].method"
    assert ask(pair[0], ids=[7], method="euclidean")


def test_a_database_that_is_away_is_told_and_waited_for(pair, server):
    client, words = pair[0], {"ids": [7]}
    before = ask(client, **words)
    server.stop()
    try:
        problem = client.post("/v1/indexes/digits/query", json={"queries": [words]})
        assert problem.status_code == 503
        assert int(problem.headers["Retry-After"]) > 0
        assert "database of this index does not answer" in problem.json()["detail"]
        assert not any(
            word in problem.text for word in ("postgresql:", "socket", str(server.folder))
        )
        assert client.get("/v1/indexes/digits").status_code == 503
        point = {"id": 901, "vector": [0.0] * 64}
        assert post(client, "add", {"points": [point]}, status=503)
        assert client.get("/health").status_code == 200
        assert client.get("/v1/indexes/two-moons").status_code == 200
        listed = client.get("/v1/indexes").json()
        assert listed["unavailable"] == ["digits"]
        assert {info["name"] for info in listed["indexes"]} == {"two-moons", "three-rings"}
        metrics = client.get("/metrics")
        assert metrics.status_code == 200
        assert 'rankfold_rejected_total{reason="database"} 3.0' in metrics.text
        assert 'rankfold_points{index="two-moons"}' in metrics.text
    finally:
        server.start()
    found = ask(client, **words)
    assert found["answers"][0]["results"] == before["answers"][0]["results"]
    assert 'rankfold_points{index="digits"} 200.0' in client.get("/metrics").text


def test_both_write_at_the_same_time_and_one_is_killed(engine):
    writers.create("living", engine)
    clients = [writers.Client(number) for number in range(N_CLIENTS)]
    halves = clients[: N_CLIENTS // 2], clients[N_CLIENTS // 2 :]
    words = ("living", "--engine", engine)
    with (
        serving(*words, RANKFOLD_API_KEY=KEY) as one,
        serving(*words, RANKFOLD_API_KEY=KEY) as other,
        writers.writing(halves[1], other.address, KEY) as answered,
    ):
        with writers.writing(halves[0], one.address, KEY) as answered_first:
            writers.wait_for(answered_first, 30)
            one.process.kill()
        writers.wait_for(answered, 30)  # so that nothing of the killed one is under way
        other.process.terminate()
    verify(PostgreSQL(engine).open("living"))
    with Index.open("living", engine=engine) as index:
        for client in halves[1]:  # of a service that was told to end all is certain
            assert writers.held_by(index, client) == client.sure
        writers.check(index, clients, certain=False)

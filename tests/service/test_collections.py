"""A service over an attached collection: a real PostgreSQL, which goes away and comes back."""

import json
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import httpx
import psycopg
import pytest
from databases.servers import PostgreSQLServer
from running_service import BEARER, KEY, running, wait_until

from rankfold import Collection, Index
from rankfold.errors import DatabaseError, InputError
from rankfold.service import Settings, create_app, handlers, routes


@pytest.fixture(scope="module")
def server(digits):
    """Return a server of its own, since it is stopped meanwhile, with digits 0 to 199."""
    started = PostgreSQLServer()
    started.run("CREATE EXTENSION vector")
    started.run("CREATE TABLE digits (id int PRIMARY KEY, digit int, v vector(64))")
    with psycopg.connect(started.address()) as connection:
        pairs = zip(digits.labels[:200].tolist(), digits.X[:200].tolist(), strict=True)
        rows = [(place, digit, json.dumps(vector)) for place, (digit, vector) in enumerate(pairs)]
        connection.cursor().executemany("INSERT INTO digits VALUES (%s, %s, %s)", rows)
    Collection.attach(started.address(), "digits", n_neighbors=8).close()
    yield started
    started.remove()


@pytest.fixture
def client(server):
    with (
        Collection.open(server.address(), "digits") as collection,
        running(create_app({"digits": collection}, Settings(api_key=KEY))) as client,
    ):
        client.headers.update(BEARER)
        client.collection = collection
        yield client


def ask(client, status=200, **query):
    response = client.post("/v1/indexes/digits/query", json={"queries": [query]})
    assert response.status_code == status, response.text
    return response.json()


def test_answers_are_those_of_the_collection(client, digits):
    (answer,) = ask(client, ids=[7, 9], negative=[3], top=20)["answers"]
    expected = client.collection.query([7, 9], negative=3, top=20)
    assert [result["id"] for result in answer["results"]] == expected.ids
    assert answer["results"][0]["payload"]["digit"] == digits.labels[expected.ids[0]]
    assert answer["round_trips"] > 0
    body = {"query": {"ids": [7]}, "id": 9}
    reason = client.post("/v1/indexes/digits/explain", json=body).json()
    assert reason["text"] == client.collection.query(7).explain(9).to_text()
    points = client.post("/v1/indexes/digits/points", json={"ids": [5], "vectors": True}).json()
    assert points["points"][0]["vector"] == digits.X[5].tolist()
    assert client.get("/v1/indexes/digits/map").json()["ids"] == []


def test_thresholds_and_groups_are_those_of_the_collection(client):
    for asked in ({"min_score": 0.01}, {"group_by": "digit", "per_group": 2}):
        (answer,) = ask(client, ids=[7], top=8, **asked)["answers"]
        expected = client.collection.query(7, top=8, **asked)
        assert [result["id"] for result in answer["results"]] == expected.ids
        assert 0 < len(expected.ids) <= 8
    digits = [result["payload"]["digit"] for result in answer["results"]]
    assert len({*digits}) < len(digits) <= 2 * len({*digits})


def test_what_a_collection_cannot_do_is_told(client):
    known = client.get("/v1/indexes/digits").json()
    assert (known["methods"], known["writable"]) == (["ran", "distance"], False)
    assert known["limits"]["n_neighbors"] == 8
    assert "pagerank" in ask(client, 422, ids=[7], method="pagerank")["detail"]
    new = {"points": [{"id": 900, "vector": [0.0] * 64}]}
    assert client.post("/v1/indexes/digits/add", json=new).status_code == 403


def test_outsiders_do_not_write_sql(client):
    problem = ask(client, 422, ids=[7], where="id = 1 or pg_sleep(1) is null")
    assert problem["errors"][0]["field"] == "queries[0].where"


def test_a_database_that_is_away_is_told_and_waited_for(client, server):
    before = ask(client, ids=[7])
    server.stop()
    try:
        problem = client.post("/v1/indexes/digits/query", json={"queries": [{"ids": [7]}]})
        assert problem.status_code == 503
        assert int(problem.headers["Retry-After"]) > 0
        assert not any(
            word in problem.text for word in ("postgresql:", "socket", str(server.folder))
        )
        assert client.get("/health").status_code == 200
        assert client.get("/v1/indexes").json()["unavailable"] == ["digits"]
    finally:
        server.start()
    assert ask(client, ids=[7])["answers"][0]["results"] == before["answers"][0]["results"]


def test_a_database_that_does_not_answer_holds_up_nobody_else(server, digits, monkeypatch):
    monkeypatch.setattr(routes, "SOON", 0.2)
    body, place = {"queries": [{"ids": [7]}]}, "/v1/indexes/{}/query".format
    settings = Settings(timeout=600, running=2, waiting=8)
    with (
        Collection.open(server.address(), "digits") as collection,
        Index.build(digits.X[:200]) as index,
        psycopg.connect(server.address()) as other,
        ThreadPoolExecutor(6) as threads,
    ):
        app = create_app({"digits": collection, "own": index}, settings)
        with running(app) as client:
            other.execute("LOCK TABLE digits, digits_rankfold IN ACCESS EXCLUSIVE MODE")
            turns, over = app.state.limiters["digits"], Event()

            def until_over():
                """Ask, and hang up where no answer comes, for as long as the test goes on."""
                with httpx.Client(base_url=client.base_url, timeout=1) as asking:
                    while not over.is_set():
                        with pytest.raises(httpx.ReadTimeout):
                            asking.post(place("digits"), json=body)

            attackers = [threads.submit(until_over) for _ in range(6)]
            wait_until(lambda: turns.running == 2 and turns.waiting)
            for _ in range(3):
                assert client.post(place("own"), json=body).status_code == 200
                listed = client.get("/v1/indexes").json()
                assert listed["unavailable"] == ["digits"]
                assert listed["indexes"][0]["name"] == "own"
            over.set()
            for attacker in attackers:
                attacker.result()
            wait_until(lambda: not turns.running)  # what nobody waits for is given up
            waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
            wait_until(lambda: other.execute(waiting).fetchone() == (0,))  # by the database, too
            other.rollback()
            assert client.post(place("digits"), json=body).status_code == 200


def test_what_cannot_be_read_is_left_out_of_the_list():
    class Served:
        def __init__(self, *errors):
            self.errors = errors

        def info(self):
            for error in self.errors:
                raise error
            return {"name": "fine"}

    broken = DatabaseError("permission denied"), InputError("it has no graph yet")
    assert handlers.list_all([Served(), *map(Served, broken)]) == [{"name": "fine"}]

"""The clients, against a service that runs."""

import asyncio
from socket import create_server
from threading import Thread
from types import SimpleNamespace

import numpy as np
import pytest
from running_service import KEY, running

from rankfold import RAN, Index, InputError
from rankfold import client as clients
from rankfold.client import AsyncClient, Client
from rankfold.errors import UnreachableError
from rankfold.service import Settings, create_app


class Awaited:
    """A client of asyncio that is used like the other one."""

    def __init__(self, *words, **options):
        self._runner = asyncio.Runner()
        self._client = AsyncClient(*words, **options)

    def __enter__(self):
        self._runner.run(self._client.__aenter__())
        return self

    def __exit__(self, *error):
        self._runner.run(self._client.__aexit__(*error))
        self._runner.close()

    def __getattr__(self, name):
        method = getattr(self._client, name)
        return lambda *words, **options: self._runner.run(method(*words, **options))


@pytest.fixture(params=[Client, Awaited])
def kind(request):
    return request.param


@pytest.fixture
def asking(kind, client):
    with kind(str(client.base_url)) as made:
        yield made


def test_answers_are_those_of_the_index(asking, index, digits):
    expected = index.query([3, 4], vectors=[digits.X[600]], top=7, smoothness=10)
    found = asking.query(
        "digits", ids=np.array([3, 4]), vectors=[digits.X[600]], top=7,
        parameters={"smoothness": 10},
    )  # fmt: skip
    assert found.ids == expected.ids
    np.testing.assert_allclose([hit.score for hit in found], expected.scores)
    assert [hit.payload["digit"] for hit in found] == expected.payload["digit"]
    assert found.certified == expected.ranking.solution.certified
    assert found.bound == expected.ranking.solution.bound
    assert found.details["method"] == "ran"
    assert found.details["alternations"] == 1
    batch = asking.query_batch("digits", [{"ids": [3], "top": 2}, {"ids": [4], "top": 3}])
    assert [len(answer) for answer in batch] == [2, 3]


def test_counts_pages_and_words(asking, index):
    assert asking.count("digits") == len(index)
    assert asking.count("digits", "digit = 8") == index.count("digit = 8")
    page = asking.scroll("digits", where="digit = 8", top=3)
    assert [one["id"] for one in page] == [one["id"] for one in index.scroll("digit = 8", top=3)]
    rest = asking.scroll("digits", where="digit = 8", after=page[-1]["id"], columns=["digit"])
    assert len(rest) == index.count("digit = 8") - 3
    assert rest[0]["payload"] == {"digit": 8}
    hits = asking.query("digits", ids=[3], min_score=0.001, top=50).hits
    assert all(hit.proven and hit.score >= 0.001 for hit in hits)
    with pytest.raises(InputError, match="of which the index has none"):
        asking.find("digits", "chess")


def test_what_there_is(asking, index):
    assert asking.indexes()[0]["name"] == "digits"
    assert asking.info("digits")["points"] == len(index)
    assert [one["id"] for one in asking.get("digits", np.array([3, 4]))] == [3, 4]
    (point,) = asking.get("digits", ["d5"], vectors=True)
    np.testing.assert_allclose(point["vector"], index.vectors(["d5"])[0])
    reason = asking.explain("digits", 7, ids=[3])
    assert reason["point"] == 7


def test_candidates_are_put_in_order(asking, index, digits):
    ids = index.query("d5", top=30, method="distance").ids
    found = asking.rerank("digits", digits.X[5], ids=ids, top_n=4)
    expected = RAN().fit(index.vectors(ids)).rank(vectors=digits.X[5], top=4)
    assert [one.index for one in found] == expected.indices.tolist()
    assert [one.id for one in found] == [ids[place] for place in expected.indices]
    np.testing.assert_allclose([one.relevance_score for one in found], expected.scores)


def test_every_route_can_be_asked(asking, index, client, kind):
    assert asking.health()["status"] == "ok"
    assert "rankfold_requests_total" in asking.metrics()
    drawn = asking.map("digits", "digit", limit=7)
    assert len(drawn["ids"]) == len(drawn["values"]) == 7
    assert len(asking.map("digits")["ids"]) == len(index)
    described = client.get("/openapi.json").json()["paths"]
    verbs = {path.rpartition("/")[2] for path in described} - {"{name}"}
    other_names = {"points": "get"}
    for verb in verbs:
        method = other_names.get(verb, verb)
        assert callable(getattr(Client, method)), verb
        assert callable(getattr(AsyncClient, method)), verb


PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def test_a_trace_is_passed_on(kind, busy):
    address, serve, seen = busy
    thread = Thread(target=serve, args=(1, 3))
    thread.start()
    with kind(address, retries=2, traceparent=iter([PARENT, None, PARENT]).__next__) as asking:
        asking.indexes()
        asking.indexes()
    thread.join()
    assert [f"traceparent: {PARENT}".encode() in one for one in seen] == [True, False, True]


def test_what_is_wrong_is_said(asking, kind, client):
    with pytest.raises(InputError, match="answered 404: there is no index of this name"):
        asking.info("nobody")
    with pytest.raises(InputError, match="answered 422"):
        asking.query("digits", ids=[3], top=0)
    with pytest.raises(InputError, match=r"answered 40[0-9]"):
        asking.info("a/../b?c#d")


def test_changes_need_the_key(kind, tmp_path, digits):
    with Index.build(digits.X[:50], path=tmp_path / "own") as index:
        app = create_app({"own": index}, Settings(api_key=KEY))
        with running(app) as served, kind(str(served.base_url), KEY) as asking:
            assert asking.add("own", [{"vector": digits.X[50], "payload": {}}]) == [50]
            assert asking.update("own", [{"id": 50, "vector": digits.X[51]}]) == [50]
            assert asking.remove("own", [50]) == [50]
            with (
                kind(str(served.base_url), "another") as stranger,
                pytest.raises(InputError, match="answered 401"),
            ):
                stranger.remove("own", [1])


@pytest.fixture
def busy():
    """Return a server that is busy for its first requests, and perhaps says for how long."""
    answer = b'HTTP/1.1 200 OK\r\nContent-Length: 15\r\nConnection: close\r\n\r\n{"indexes": []}'
    seen = []
    with create_server(("127.0.0.1", 0)) as server:
        server.settimeout(10)

        def serve(n_refused, n_requests, said=b"Retry-After: 0\r\n"):
            refused = (
                b"HTTP/1.1 503 Service Unavailable\r\n" + said + b"Content-Length: 18\r\n"
                b'Connection: close\r\n\r\n{"detail": "busy"}'
            )
            for number in range(n_requests):
                connection, _ = server.accept()
                with connection:
                    seen.append(connection.recv(4096))
                    connection.sendall(refused if number < n_refused else answer)

        yield f"http://127.0.0.1:{server.getsockname()[1]}", serve, seen


@pytest.mark.parametrize("n_refused", [0, 2, 3])
def test_it_asks_again_while_the_service_is_busy(kind, busy, n_refused):
    address, serve, seen = busy
    n_requests = min(n_refused + 1, 3)
    thread = Thread(target=serve, args=(n_refused, n_requests))
    thread.start()
    with kind(address, retries=2) as asking:
        if n_refused < 3:
            assert asking.indexes() == []
        else:
            with pytest.raises(UnreachableError, match="answered 503: busy"):
                asking.indexes()
    thread.join()
    assert len(seen) == n_requests


@pytest.fixture
def waits(monkeypatch):
    """Return the seconds for which clients mean to wait, and let none of them pass."""
    waited = []

    async def wait(seconds):
        waited.append(seconds)

    monkeypatch.setattr(clients, "time", SimpleNamespace(sleep=waited.append))
    monkeypatch.setattr(clients, "asyncio", SimpleNamespace(sleep=wait))
    return waited


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("nan", 1), ("-1", 1), ("inf", 1), ("Wed, 18 Nov 2026 20:00:00 GMT", 1),
        ("2", 2), ("1000000", clients.LONGEST_WAIT),
    ],
)  # fmt: skip
def test_it_waits_as_long_as_it_is_told_within_reason(kind, busy, waits, said, meant):
    address, serve, seen = busy
    thread = Thread(target=serve, args=(1, 2, f"Retry-After: {said}\r\n".encode()))
    thread.start()
    with kind(address) as asking:
        assert asking.indexes() == []
    thread.join()
    assert (len(seen), waits) == (2, [meant])


def test_a_change_that_may_have_been_made_is_not_sent_again(kind, busy):
    address, serve, seen = busy
    thread = Thread(target=serve, args=(1, 1, b""))
    thread.start()
    with kind(address) as asking, pytest.raises(UnreachableError, match="answered 503: busy"):
        asking.remove("own", [1])
    thread.join()
    assert len(seen) == 1


def test_fewer_than_no_retries_are_refused(kind):
    with pytest.raises(InputError, match="retries is -1"):
        kind("http://127.0.0.1:1", retries=-1)


def test_nobody_answers(kind):
    with create_server(("127.0.0.1", 0)) as server:
        address = f"http://127.0.0.1:{server.getsockname()[1]}"
        with kind(address, timeout=0.2) as asking, pytest.raises(UnreachableError, match="in time"):
            asking.indexes()
    with kind(address) as asking, pytest.raises(UnreachableError, match="is not reached"):
        asking.indexes()

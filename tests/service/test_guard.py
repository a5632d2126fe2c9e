"""Bodies and hosts, over a real network where it matters."""

import asyncio
from threading import Event

import pytest
from guarded_service import JSON, asking, connect, everything, guarded, head
from running_service import KEY, running, wait_until

from rankfold.service.limits import ANY_HOST, Settings
from rankfold.service.server import patient_for

LIMIT = 1000
POST = ("POST /length HTTP/1.1", "Content-Type: application/json")
CHUNKED = (*POST, "Transfer-Encoding: chunked")


@pytest.fixture(scope="module")
def client():
    app, _ = guarded(Settings(body_bytes=LIMIT))
    with running(app) as client:
        yield client


def rejected(client, reason):
    """Return how many requests were turned away for some reason."""
    lines = client.get("/metrics").text.splitlines()
    start = f'rankfold_rejected_total{{reason="{reason}"}} '
    return sum(float(line.removeprefix(start)) for line in lines if line.startswith(start))


def test_bodies_arrive(client):
    assert client.post("/length", json=[1, 2, 3]).json() == 3
    assert client.post("/length", content=iter([b"[1,", b"2]"]), headers=JSON).json() == 2


def test_the_longest_body_is_as_long_as_allowed(client):
    body = b"[" + b" " * (LIMIT - 2) + b"]"
    assert client.post("/length", content=body, headers=JSON).json() == 0
    before = rejected(client, "large_body")
    response = client.post("/length", content=body + b" ", headers=JSON)
    assert (response.status_code, response.json()["status"]) == (413, 413)
    assert f"{LIMIT} bytes" in response.json()["detail"]
    assert rejected(client, "large_body") == before + 1


def test_a_body_is_counted_while_it_arrives(client):
    response = client.post("/length", content=iter([b"[" + b" " * 600] * 100), headers=JSON)
    assert response.status_code == 413
    assert client.post("/length", json=[]).json() == 0


def test_a_length_that_is_too_long_is_refused_before_the_body(client):
    with connect(client) as connection:
        connection.sendall(head(*POST, f"Content-Length: {10**17}"))
        assert connection.recv(1000).startswith(b"HTTP/1.1 413 ")


def test_an_announced_body_is_not_asked_for_if_it_is_too_long(client):
    with connect(client) as connection:
        connection.sendall(head(*POST, "Expect: 100-continue", f"Content-Length: {LIMIT + 1}"))
        assert connection.recv(1000).startswith(b"HTTP/1.1 413 ")
    with connect(client) as connection:
        connection.sendall(head(*POST, "Expect: 100-continue", "Content-Length: 2"))
        assert connection.recv(1000).startswith(b"HTTP/1.1 100 ")
        connection.sendall(b"[]")
        assert connection.recv(1000).startswith(b"HTTP/1.1 200 ")


def test_a_slow_body_is_given_up():
    app, _ = guarded(Settings(body_timeout=0.2))
    with running(app) as client, connect(client) as connection:
        connection.sendall(head(*CHUNKED) + b"1\r\n[\r\n")
        answer = everything(connection)  # which ends, since the server closes the connection
        assert answer.startswith("HTTP/1.1 408 ")
        assert "0.2 seconds" in answer
        assert rejected(client, "slow_body") == 1


def test_headers_that_do_not_end_are_given_up():
    app, _ = guarded()
    with running(app, http=patient_for(0.2)) as client:
        for beginning in (b"", b"GET /health HTTP/1.1\r\nHost: local"):
            with connect(client) as connection:
                connection.sendall(beginning)
                assert everything(connection) == ""  # it ends, since the server closes it
        with connect(client) as connection:  # the second request of a connection
            connection.sendall(head("GET /health HTTP/1.1") + b"GET /heal")
            assert everything(connection).count("HTTP/1.1 200 OK") == 1


def test_a_body_that_does_not_end_is_given_up_though_it_was_answered():
    app, _ = guarded()
    with running(app, http=patient_for(0.2)) as client, connect(client) as connection:
        connection.sendall(head("POST /nothing HTTP/1.1", "Transfer-Encoding: chunked"))
        assert connection.recv(1000).startswith(b"HTTP/1.1 4")

        def closed():
            try:
                connection.sendall(b"1\r\n[\r\n")
            except OSError:
                return True
            return False

        wait_until(closed)


def test_work_that_takes_longer_than_headers_may_is_waited_for():
    app, work = guarded()
    with running(app, http=patient_for(0.05)) as client, connect(client) as connection:
        connection.sendall(head("GET /work HTTP/1.1", "Connection: close"))
        assert work.begun.acquire(timeout=30)
        Event().wait(0.2)
        work.let_go.set()
        assert everything(connection).startswith("HTTP/1.1 200 OK")


@pytest.mark.parametrize(("key", "path"), [(None, "/add"), (KEY, "/length"), (KEY, "/address")])
def test_only_changes_may_have_the_longest_bodies(key, path):
    app, _ = guarded(Settings(api_key=key, body_bytes=100, read_bytes=20))
    body = b"[" + b" " * 30 + b"]"

    async def scene():
        async with asking(app) as client:
            headers = {**JSON, "Authorization": f"Bearer {key}"}
            refused = await client.post(path, content=body, headers=headers)
            assert refused.status_code == 413
            assert "20 bytes" in refused.json()["detail"]
            change = await client.post("/x/add", content=body, headers=headers)
            assert change.status_code == (413 if key is None else 404)

    asyncio.run(scene())


def test_requests_may_follow_each_other_without_waiting(client):
    with connect(client) as connection:
        one = head(*CHUNKED) + b"1\r\n[\r\n2\r\n1]\r\n0\r\n\r\n"
        two = head(*POST, "Content-Length: 5") + b"[1,2]"
        last = head(*POST, "Connection: close", "Content-Length: 2") + b"[]"
        connection.sendall(one + two + last)
        answers = everything(connection).split("HTTP/1.1 200 OK")
        assert [answer.rpartition("\r\n")[2] for answer in answers[1:]] == ["1", "2", "0"]


def test_a_client_that_leaves_is_no_error(client, caplog):
    caplog.set_level("INFO", logger="rankfold.service")
    with connect(client) as connection:
        connection.sendall(head(*POST, "Content-Length: 10") + b"[")
    wait_until(lambda: 'status="gone"' in client.get("/metrics").text)
    assert not [record for record in caplog.records if record.levelname == "ERROR"]
    assert "gone" in [record.message for record in caplog.records]


def test_only_so_many_bodies_are_kept():
    app, _ = guarded(Settings(bodies=1))
    with running(app) as client, connect(client) as connection:
        connection.sendall(head(*POST, "Expect: 100-continue", "Content-Length: 2"))
        assert connection.recv(1000).startswith(b"HTTP/1.1 100 ")  # so the first is being read
        second = client.post("/length", json=[])
        assert (second.status_code, second.headers["Retry-After"]) == (503, "1")
        connection.sendall(b"[]")
        assert connection.recv(1000).startswith(b"HTTP/1.1 200 ")
        assert client.post("/length", json=[]).status_code == 200


def test_bodies_are_only_so_long_together():
    app, _ = guarded(Settings(body_bytes=800, held_bytes=1000))
    long = b"[" + b" " * 500 + b"]"
    with running(app) as client, connect(client) as connection:
        connection.sendall(head(*POST, "Content-Length: 600") + b"[" + b" " * 598)
        wait_until(lambda: client.post("/length", content=long, headers=JSON).status_code == 503)
        refused = client.post("/length", content=long, headers=JSON)
        assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")
        assert client.post("/length", json=[1]).json() == 1  # a short one finds room
        connection.sendall(b"]")
        assert connection.recv(1000).startswith(b"HTTP/1.1 200 ")
        assert client.post("/length", content=long, headers=JSON).json() == 0


def test_a_body_may_be_as_long_as_one_may_be():
    app, _ = guarded(Settings(body_bytes=800, held_bytes=10))
    with running(app) as client:
        assert client.post("/length", json=[1] * 100).json() == 100


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_bodies_are_json(client, kind):
    response = client.post("/length", content=b"[]", headers={"Content-Type": kind})
    assert response.status_code == 415
    assert "application/json" in response.json()["detail"]


def test_json_may_name_its_characters(client):
    headers = {"Content-Type": "Application/JSON; charset=utf-8"}
    assert client.post("/length", content=b"[1]", headers=headers).json() == 1


async def status_for(settings, host):
    app, _ = guarded(settings)
    async with asking(app) as client:
        return (await client.get("/health", headers={"Host": host})).status_code


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("LOCALHOST:80", 200),
        ("127.0.0.1:8765", 200),
        ("[::1]:1", 200),
        ("[::1]", 200),
        ("example.org", 421),
        ("localhost.example.org", 421),
        ("localhost@example.org", 421),
        ("localhost:80:80", 421),
        ("[::1", 421),
        ("", 421),
    ],
)
def test_only_this_machine_is_asked_for(host, status):
    assert asyncio.run(status_for(Settings(), host)) == status


def test_hosts_can_be_allowed():
    assert asyncio.run(status_for(Settings(hosts=("Example.org",)), "example.org:443")) == 200
    assert asyncio.run(status_for(Settings(hosts=(ANY_HOST,)), "example.org")) == 200


def test_a_body_without_the_key_is_not_read():
    app, _ = guarded(Settings(api_key=KEY))
    with running(app) as client, connect(client) as connection:
        connection.sendall(head(*POST, "Expect: 100-continue", "Content-Length: 2"))
        assert connection.recv(1000).startswith(b"HTTP/1.1 401 ")

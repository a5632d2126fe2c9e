"""Bodies and hosts, over a real network where it matters."""

import asyncio
import json
import re
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from errno import ECONNRESET
from threading import Event, Semaphore, current_thread
from time import sleep

import pytest
from fastapi import Response
from fastapi.responses import JSONResponse
from guarded_service import JSON, asking, connect, everything, guarded, head
from running_service import KEY, running, wait_until

from rankfold.service import create_app, middleware
from rankfold.service.limits import ANY_HOST, Settings
from rankfold.service.middleware import parsed
from rankfold.service.responses import PiecewiseResponse
from rankfold.service.server import patient_for

LIMIT = 1000
POST = ("POST /length HTTP/1.1", "Content-Type: application/json")
ASKING = ("POST /large HTTP/1.1", "Content-Type: application/json")
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
    patient = patient_for(Settings(body_timeout=0.2))
    with running(app, http=patient, timeout_keep_alive=1) as client:
        for beginning in (b"", b"GET /health HTTP/1.1\r\nHost: local"):
            with connect(client) as connection:
                connection.sendall(beginning)
                assert everything(connection) == ""  # it ends, since the server closes it
        with connect(client) as connection:  # the second request of a connection
            connection.sendall(head("GET /health HTTP/1.1"))
            assert connection.recv(1000).startswith(b"HTTP/1.1 200 OK")
            connection.sendall(b"GET /heal")
            assert "HTTP/1.1" not in everything(connection)
        with connect(client) as connection:  # and where it comes with the first
            connection.sendall(head("GET /health HTTP/1.1") + b"GET /heal")
            assert everything(connection).count("HTTP/1.1 200 OK") == 1


def test_a_body_that_does_not_end_is_given_up_though_it_was_answered():
    app, _ = guarded()
    with (
        running(app, http=patient_for(Settings(body_timeout=0.2))) as client,
        connect(client) as connection,
    ):
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
    with (
        running(app, http=patient_for(Settings(body_timeout=0.05))) as client,
        connect(client) as connection,
    ):
        connection.sendall(head("GET /work HTTP/1.1", "Connection: close"))
        assert work.begun.acquire(timeout=30)
        Event().wait(0.2)
        work.let_go.set()
        assert everything(connection).startswith("HTTP/1.1 200 OK")


LARGE = 16 * 2**20
"""Bytes of an answer that no socket takes at once."""


def with_large_answers(**limits):
    """Return an app with large answers, connections to it, and what counts how many it gave."""
    settings = Settings(**limits)
    app, _ = guarded(settings)
    begun = Semaphore(0)

    @app.post("/large")
    async def large():
        begun.release()
        return Response(bytes(LARGE))

    return app, patient_for(settings), begun


def ask_for_much(client, times=1):
    connection = connect(client)
    connection.sendall(times * (head(*ASKING, "Content-Length: 2") + b"[]"))
    return connection


def was_reset(connection):
    return connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == ECONNRESET


def test_an_answer_that_is_never_taken_is_given_up():
    app, connections, _ = with_large_answers(send_timeout=0.2)
    with running(app, http=connections) as client, ask_for_much(client) as connection:
        wait_until(lambda: was_reset(connection))
        assert client.get("/health").json() == "ok"


def test_an_answer_that_is_taken_byte_by_byte_is_given_up():
    app, connections, _ = with_large_answers(send_timeout=0.2)
    with running(app, http=connections) as client, ask_for_much(client) as connection:
        wait_until(lambda: connection.recv(1) and was_reset(connection))


def test_an_answer_is_waited_for_while_it_is_taken():
    app, connections, _ = with_large_answers(send_timeout=60)
    with running(app, http=connections) as client, ask_for_much(client) as connection:
        received = 0
        while received < LARGE:
            part = len(connection.recv(2**16))
            assert part
            received += part


def test_of_too_many_that_take_nothing_the_first_goes():
    app, connections, begun = with_large_answers(send_timeout=3600, unsent_bytes=LARGE * 3 // 2)
    with running(app, http=connections) as client, ask_for_much(client) as first:
        assert begun.acquire(timeout=30)
        assert client.get("/health").json() == "ok"  # so the first answer was written by now
        with ask_for_much(client) as second:
            wait_until(lambda: was_reset(first))
            assert not was_reset(second)
            for connection in (first, second):  # or the server would wait for them when it ends
                connection.close()


def test_who_takes_no_answers_holds_no_bodies():
    app, connections, begun = with_large_answers(send_timeout=3600, held_bytes=10)
    long = head(*ASKING, f"Content-Length: {2**17}") + b" " * 2**17
    with running(app, http=connections) as client, connect(client) as connection:
        connection.sendall(2 * long)
        assert begun.acquire(timeout=30)
        assert begun.acquire(timeout=30)  # the second answer waits for the first to be taken
        body = b"[" + b" " * 2**17 + b"]"
        wait_until(lambda: client.post("/length", content=body, headers=JSON).status_code == 200)
        connection.close()


def test_bodies_that_do_not_arrive_make_room_for_others():
    app, _ = guarded(Settings(bodies=2, share=0.1, body_timeout=3600))
    with running(app) as client, ExitStack() as stack:
        slow = [stack.enter_context(connect(client)) for _ in range(2)]
        for connection in slow:
            connection.sendall(head(*POST, "Content-Length: 2") + b"[")

        def arrives():
            """Send a body when it is asked for; return whether another was given up for it."""
            with connect(client) as another:
                another.sendall(head(*POST, "Expect: 100-continue", "Content-Length: 2"))
                received = another.recv(1000)
                another.sendall(b"[]")
                while not re.search(rb"HTTP/1.1 (200|503) ", received):
                    received += another.recv(1000)
            return rejected(client, "slow_body") == 1

        wait_until(arrives)
        assert slow[0].recv(1000).startswith(b"HTTP/1.1 408 ")
        slow[1].sendall(b"]")
        assert slow[1].recv(1000).startswith(b"HTTP/1.1 200 ")


def test_connections_without_a_request_make_room_for_others():
    settings = Settings(connections=3, body_timeout=3600)
    app, work = guarded(settings)
    with running(app, http=patient_for(settings)) as client, ExitStack() as stack:
        busy = stack.enter_context(connect(client))
        busy.sendall(head("GET /work HTTP/1.1", "Connection: close"))
        assert work.begun.acquire(timeout=30)
        silent = [stack.enter_context(connect(client)) for _ in range(4)]
        assert everything(silent[0]) == ""  # it ends, since the server closes it
        assert everything(silent[1]) == ""
        silent[3].sendall(head("GET /health HTTP/1.1", "Connection: close"))
        assert everything(silent[3]).startswith("HTTP/1.1 200 OK")
        work.let_go.set()
        assert everything(busy).startswith("HTTP/1.1 200 OK")


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


def test_only_so_many_bodies_arrive_at_a_time():
    app, _ = guarded(Settings(bodies=1, share=60, body_timeout=60))
    with running(app) as client, connect(client) as connection, connect(client) as another:
        connection.sendall(head(*POST, "Expect: 100-continue", "Content-Length: 2"))
        assert connection.recv(1000).startswith(b"HTTP/1.1 100 ")  # so the first is being read
        another.sendall(head(*POST, "Content-Length: 2") + b"[")
        second = another.recv(1000).decode()
        assert second.startswith("HTTP/1.1 503 ")
        assert "retry-after: 1\r\n" in second
        wait_until(lambda: client.post("/length", json=[]).status_code == 200)  # it is there soon
        connection.sendall(b"[]")
        assert connection.recv(1000).startswith(b"HTTP/1.1 200 ")


def test_bodies_are_only_so_long_together():
    limits = {"body_bytes": 800_000, "held_bytes": 1_000_000, "share": 60, "body_timeout": 60}
    app, _ = guarded(Settings(**limits))
    long, held = b"[" + b" " * 500_000 + b"]", []

    def ask():
        return client.post("/length", content=long, headers=JSON)

    def one_is_held():
        """Send most of a body; return whether another is refused, for either may come first."""
        while held:
            held.pop().close()
        held.append(connect(client))
        held[0].sendall(head(*POST, "Content-Length: 600000") + b"[" + b" " * 599_998)
        return ask().status_code == 503

    with running(app) as client:
        wait_until(one_is_held)
        refused = ask()
        assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")
        assert client.post("/length", json=[1]).json() == 1  # a short one finds room
        held[0].sendall(b"]")
        assert held[0].recv(1000).startswith(b"HTTP/1.1 200 ")
        assert ask().json() == 0
        held[0].close()


def test_others_are_answered_while_a_long_body_is_parsed(monkeypatch):
    app, _ = guarded()
    long = b"[" + b" " * 100_000 + b"1]"
    begun, answered, loads = Event(), Event(), json.loads

    def patient(text, **options):
        if len(text) == len(long):
            begun.set()
            assert answered.wait(30)
        return loads(text, **options)

    monkeypatch.setattr(json, "loads", patient)
    with running(app) as client, ThreadPoolExecutor(1) as another:
        length = another.submit(client.post, "/length", content=long, headers=JSON)
        assert begun.wait(30)
        assert client.get("/health").json() == "ok"
        assert not length.done()
        answered.set()
        assert length.result().json() == 1


def test_others_are_answered_while_a_long_body_is_checked(monkeypatch):
    app = create_app({})
    begun, answered, check = Event(), Event(), middleware.checked_body
    threads = []

    def patient(sent, model):
        threads.append(current_thread())
        if "words" in sent:
            begun.set()
            assert answered.wait(30)
        return check(sent, model)

    monkeypatch.setattr(middleware, "checked_body", patient)
    long = {"words": "a" * 100_000}
    with running(app) as client, ThreadPoolExecutor(1) as another:
        found = another.submit(client.post, "/v1/indexes/two-moons/find", json=long)
        assert begun.wait(30)
        assert client.get("/health").json()["status"] == "ok"
        counted = client.post("/v1/indexes/two-moons/count", json={})
        assert counted.json()["count"] > 0
        assert not found.done()
        answered.set()
        assert found.result().json()["errors"][0]["field"] == "words"
    assert threads[0].name.startswith("rankfold-parser")
    assert not threads[1].name.startswith("rankfold-parser")


def turns_while(function, *given):
    """Let a function run in another thread; return its result, and how often we had a turn."""
    begun, turns = Event(), 0

    def work():
        begun.set()
        return function(*given)

    with ThreadPoolExecutor(1) as another:
        found = another.submit(work)
        begun.wait()
        while not found.done():
            sleep(0.0005)
            turns += 1
    return found.result(), turns


def test_threads_take_turns_while_numbers_are_parsed():
    found, turns = turns_while(parsed, b"[" + b"1,2.5," * 500_000 + b"3]")
    assert len(found) == 1_000_001
    assert turns > 5


@pytest.mark.parametrize("kind", ["answers", "ids"])
def test_threads_take_turns_while_answers_are_written(kind):
    content = {
        "answers": {
            "answers": [{"results": [{"id": i, "score": i / 7}] * 2000} for i in range(99)]
        },
        "ids": {"ids": [f"point {number}" for number in range(10**6)], "values": None},
    }[kind]
    found, turns = turns_while(PiecewiseResponse, content)
    assert found.body == JSONResponse(content).body
    assert turns > 5


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

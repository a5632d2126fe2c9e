"""``rankfold serve``: what it listens on, how it begins and ends."""

import json
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager

import httpx
import pytest

from rankfold import Index

EVERYWHERE = "0.0.0.0"  # noqa: S104, all addresses of this machine
KEY = "a-key-for-the-tests"
BEARER = {"Authorization": f"Bearer {KEY}"}


@pytest.fixture
def serving(script, tmp_path, monkeypatch):
    """Return a way to run the command on a free port: its process, and a client."""

    @contextmanager
    def serving(*words, key=None):
        if key is None:
            monkeypatch.delenv("RANKFOLD_API_KEY", raising=False)
        else:
            monkeypatch.setenv("RANKFOLD_API_KEY", key)
        process = subprocess.Popen(
            [script, "serve", *words, "--port", "0"],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            said = next(line for line in process.stderr if line.startswith("The page is at "))
            with httpx.Client(base_url=said.split()[4], timeout=60) as client:
                yield process, client
        finally:
            process.kill()
            process.communicate()

    return serving


def ended(process):
    """Return status, output and log of a process."""
    printed, logged = process.communicate(timeout=60)
    return process.returncode, printed, [json.loads(line) for line in logged.splitlines()]


def connect(client):
    return socket.create_connection((client.base_url.host, client.base_url.port), timeout=30)


def test_it_serves_until_ctrl_c(serving, index):
    with serving(index) as (process, client):
        assert client.get("/health").json()["status"] == "ok"
        known = client.get("/v1/indexes").json()["indexes"]
        assert [(one["name"], one["writable"]) for one in known] == [
            ("moons", False),
            ("two-moons", False),
            ("three-rings", False),
        ]
        process.send_signal(signal.SIGINT)
        printed, logged = process.communicate(timeout=60)
    assert (process.returncode, printed) == (130, "")
    assert logged.endswith("Stopped: every change that was answered is on disk.\n")
    assert "Traceback" not in logged
    log = [json.loads(line) for line in logged.splitlines() if line.startswith("{")]
    assert [line["route"] for line in log if line["event"] == "request"] == [
        "/health",
        "/v1/indexes",
    ]


@pytest.mark.slow
def test_a_query_that_has_not_settled_is_no_warning(serving):
    query = {"ids": [0], "parameters": {"max_iter": 2, "tol": 1e-12, "guard": False}}
    with serving() as (process, client):
        answer = client.post("/v1/indexes/two-moons/query", json={"queries": [query]})
        assert answer.json()["answers"][0]["alternations"] == 2
        process.send_signal(signal.SIGTERM)
        _, _, log = ended(process)
    assert not [line for line in log if line["level"] == "warning"]


def test_with_a_key_it_is_the_writer_until_it_is_told_to_end(serving, call, index, tmp_path):
    """Even a change that arrives at the end is made."""
    body = json.dumps({"points": [{"id": "last", "vector": [0.0, 0.0]}]}).encode()
    start = (
        "POST /v1/indexes/moons/add HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n"
        f"Authorization: Bearer {KEY}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    with serving(index, key=KEY) as (process, client):
        assert client.get("/v1/indexes").status_code == 401
        assert client.get("/v1/indexes/moons", headers=BEARER).json()["writable"]
        result = call("index", "remove", index, "m5")
        assert result.exit_code == 1
        assert "open for writing elsewhere" in result.stderr
        with connect(client) as connection:
            connection.sendall(start.encode())
            assert connection.recv(1000).startswith(b"HTTP/1.1 100 ")  # so the request is running
            process.send_signal(signal.SIGTERM)
            next(line for line in process.stderr if "Shutting down" in line)
            with pytest.raises(httpx.TransportError):  # refused, or closed without an answer
                client.get("/health")
            connection.sendall(body)
            assert connection.recv(1000).startswith(b"HTTP/1.1 200 ")
        status, printed, _ = ended(process)
    assert (status, printed) == (0, "")
    with Index.open(tmp_path / index, write=True) as opened:  # it is free for another writer
        assert "last" in opened


@pytest.mark.slow
def test_without_a_key_another_may_write(serving, call, index):
    with serving(index) as (_, client):
        before = client.get("/v1/indexes/moons").json()["points"]
        assert call("index", "remove", index, "m5").exit_code == 0
        assert client.get("/v1/indexes/moons").json()["points"] == before - 1


@pytest.mark.one_in(2)
@pytest.mark.parametrize("options", [["--without-key"], ["--without-key", "--allow-host", "here"]])
def test_others_may_read_if_that_is_permitted(serving, options):
    with serving("--host", EVERYWHERE, *options) as (_, client):
        strange = client.get("/health", headers={"Host": "elsewhere"}).status_code
        assert strange == (421 if "here" in options else 200)
        assert client.get("/health", headers={"Host": "here"}).status_code == 200


@pytest.mark.slow
def test_limits_and_origins_are_taken_over(serving):
    with serving("--body-limit", "10", "--cors", "https://example.org") as (_, client):
        origin = {"Origin": "https://example.org"}
        answer = client.post("/v1/indexes/two-moons/query", json={"queries": []}, headers=origin)
        assert answer.status_code == 413
        assert answer.headers["Access-Control-Allow-Origin"] == "https://example.org"


def test_a_port_in_use(call, monkeypatch):
    monkeypatch.delenv("RANKFOLD_API_KEY", raising=False)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = call("serve", "--port", port)
    assert (result.exit_code, result.stdout) == (1, "")
    assert f"port {port} of 127.0.0.1 is in use" in result.stderr


@pytest.mark.parametrize(
    ("words", "key", "message"),
    [
        (["--host", EVERYWHERE], None, "RANKFOLD_API_KEY, or permit it with --without-key"),
        (["--host", "no such host"], None, "cannot listen on port 0 of 'no such host'"),
        ([], "too-short", "RANKFOLD_API_KEY has 9 characters"),
        ([], "", "RANKFOLD_API_KEY has 0 characters"),
        (["nothing-here"], None, "nothing-here"),
    ],
)
def test_what_cannot_be_done_is_said(call, monkeypatch, words, key, message):
    if key is None:
        monkeypatch.delenv("RANKFOLD_API_KEY", raising=False)
    else:
        monkeypatch.setenv("RANKFOLD_API_KEY", key)
    result = call("serve", *words, "--port", 0)
    assert (result.exit_code, result.stdout) == (1, "")
    assert message in result.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--allow-host", "example.org:8443"], "'example.org:8443' is no host"),
        (["--cors", "https://example.org/"], "'https://example.org/' is no origin"),
    ],
)
def test_wrong_options_are_refused(call, words, message):
    result = call("serve", *words, "--port", 0)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr


@pytest.mark.parametrize(
    ("paths", "message"),
    [
        (["a/moons", "b/moons"], "would be served as 'moons'"),
        (["two words"], "names are of letters"),
        (["/"], "names are of letters"),
        (["é"], "names are of letters"),
    ],
)
def test_names_are_plain_and_distinct(call, paths, message):
    result = call("serve", *paths, "--port", 0)
    assert result.exit_code == 2
    assert message in result.stderr


def test_the_extra_is_named(call, monkeypatch):
    monkeypatch.setitem(sys.modules, "fastapi", None)
    result = call("serve", "--port", 0)
    assert result.exit_code == 1
    assert "the extra 'serve' brings it: pip install 'fastapi" in result.stderr

"""Requests that nobody should send, a thousand of them."""

import re
import socket

import malformed
import pytest
from guarded_service import connect
from running_service import BEARER, KEY, running

from rankfold import Index
from rankfold.service import Settings, create_app

# As a service that runs does: answers say whether they have settled.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

N_POINTS = 40
INSIDE = (
    "traceback", 'file "', "site-packages", "/src/", "/lib/", "pydantic", "fastapi", "starlette",
    "uvicorn", "h11", "sqlite", "numpy", "rankfold.", "error:", "exception", "recursion",
)  # fmt: skip
"""What would tell how the service is made; in small letters."""

QUESTION = {"queries": [{"ids": [0], "top": N_POINTS}, {"vectors": [[3.0, 3.0]]}]}


def build(path):
    X = [[i % 7, i / 3] for i in range(N_POINTS)]
    colours, sold = ["red", "blue"] * (N_POINTS // 2), [True, False] * (N_POINTS // 2)
    payload = {"price": list(range(N_POINTS)), "colour": colours, "sold": sold}
    return Index.build(X, payload=payload, path=path, n_neighbors=4)


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    """Return a client of a service over an index to be kept, and one that may be spoilt."""
    folder = tmp_path_factory.mktemp("indexes")
    settings = Settings(api_key=KEY, body_timeout=0.5)
    with build(folder / "kept") as kept, build(folder / "spoilt") as spoilt:
        app = create_app({"kept": kept, "spoilt": spoilt}, settings)
        with running(app) as client:
            client.headers = BEARER
            yield client


def answer_of(client, request):
    """Send a request; return all that comes back until the connection is closed."""
    received = b""
    with connect(client) as connection:
        try:
            connection.sendall(request.sent)
            if request.kind == "garbage":  # which may look like the beginning of something
                connection.shutdown(socket.SHUT_WR)
            while more := connection.recv(65536):
                received += more
        except (ConnectionResetError, BrokenPipeError):
            pass  # the rest of what was sent was not read
    return received


@pytest.mark.parametrize("n_requests", [100, pytest.param(1000, marks=pytest.mark.slow)])
def test_malformed_requests(client, caplog, n_requests):
    def ask():
        return client.post("/v1/indexes/kept/query", json=QUESTION).raise_for_status().json()

    before, places = ask(), client.get("/v1/indexes/kept").json()
    caplog.set_level("WARNING", logger="rankfold.service")
    counts = {}
    for request in malformed.requests(n_requests, "spoilt"):
        answer = answer_of(client, request).decode("utf-8")
        told = f"{request.kind}: {request.sent[:2000]!r}\n{answer[:3000]}"
        statuses = [int(one) for one in re.findall(r"^HTTP/1.1 (\d{3}) ", answer, re.MULTILINE)]
        assert all(status < 500 for status in statuses), told
        assert not (request.broken and 200 in statuses), told
        assert not [word for word in INSIDE if word in answer.lower()], told
        counts.setdefault(request.kind, []).extend(statuses)
    assert not [one.getMessage() for one in caplog.records if one.name == "rankfold.service"]
    assert client.get("/health").json()["status"] == "ok"
    assert ask() == before
    assert client.get("/v1/indexes/kept").json() == places
    assert counts.keys() == malformed.KINDS.keys()
    for kind, statuses in counts.items():
        assert any(400 <= status < 500 for status in statuses), kind


def test_a_long_body_of_brackets_is_not_even_read(client):
    headers = {**BEARER, "Content-Type": "application/json"}
    response = client.post("/v1/indexes/kept/query", content=b"[]," * 30_000, headers=headers)
    assert response.status_code == 413
    assert "lists and objects" in response.json()["detail"]


@pytest.mark.parametrize("body", [b"[" * 60_000, b'{"queries": "\xff"}', b"9" * 5000])
def test_a_body_that_cannot_be_read(client, body):
    headers = {**BEARER, "Content-Type": "application/json"}
    response = client.post("/v1/indexes/kept/query", content=body, headers=headers)
    assert response.status_code == 400
    assert "must be JSON in UTF-8, and not nested deeply" in response.json()["detail"]

"""A real server on this machine, in place of the public source, and an empty cache."""

import hashlib
import os
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Barrier, Thread

import numpy as np
import pytest
from scipy.io import savemat

from rankfold.datasets import files

NEARBY = Path(__file__).resolve().parents[3] / "shared" / "data"


@pytest.fixture(scope="session")
def content(tmp_path_factory):
    """Return the bytes of a file of distances: the real one, or a small one of its layout."""
    real = Path(os.environ.get("RANKFOLD_DATA") or NEARBY) / "yale_diff.mat"
    if real.is_file():
        return real.read_bytes()
    path = tmp_path_factory.mktemp("made") / "yale_diff.mat"
    points = np.random.default_rng(0).random((40, 3))
    distances = np.linalg.norm(points[:, None] - points, axis=2)
    labels = np.repeat(np.arange(1, 5, dtype=np.uint8), 10)[:, None]
    savemat(path, {"Diff": distances, "labels": labels}, do_compression=True)
    return path.read_bytes()


class Source(ThreadingHTTPServer):
    """A server that gives the answers of a script, and then the file.

    A number is a status; "wrong" sends other bytes, "cut" one half, and "meet" the second
    half only when another request has got that far.
    """

    daemon_threads = True

    def __init__(self, content):
        super().__init__(("127.0.0.1", 0), Answer)
        self.content = content
        self.script = []
        self.requests = []
        self.meeting = Barrier(2)
        self.url = f"http://127.0.0.1:{self.server_port}/pinned/YALE.mat"

    def handle_error(self, *_):
        """Stay silent: clients that go away are part of the tests."""


class Answer(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.requests.append(self.path)
        turn = self.server.script.pop(0) if self.server.script else "whole"
        if isinstance(turn, int):
            self.send_error(turn)
            return
        body = b"<html>log in first</html>" if turn == "wrong" else self.server.content
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        middle = len(body) // 2
        self.wfile.write(body[:middle])
        if turn == "cut":
            return
        if turn == "meet":
            self.server.meeting.wait(timeout=60)
        self.wfile.write(body[middle:])

    def log_message(self, *_):
        pass


@pytest.fixture
def source(content):
    with Source(content) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """Return the cache, in a home of its own and still absent; no folder of data is named."""
    monkeypatch.delenv("RANKFOLD_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(files, "PAUSES", (0.0, 0.0))
    assert tmp_path in files.cache_folder().parents
    return files.cache_folder()


@pytest.fixture
def offer(monkeypatch, content, cache):
    """Make the table name other addresses for the file of YALE."""

    def offer(*urls):
        changed = replace(
            files.FILES["yale_diff.mat"], urls=urls, sha256=hashlib.sha256(content).hexdigest()
        )
        monkeypatch.setitem(files.FILES, "yale_diff.mat", changed)

    return offer

"""Embedders: models by their names, and functions."""

import json
import logging
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from rankfold.errors import EmbedderError, InputError
from rankfold.inputs import Embedder
from rankfold.inputs.embedder import BATCH, LONGEST_BATCH
from rankfold.parallel import Stop, StoppedError


def test_texts_come_in_batches_and_in_order():
    calls = []

    def lengths(texts):
        calls.append(len(texts))
        return np.array([[len(text), 1.0] for text in texts], dtype=np.float16)

    texts = ["a" * (1 + number % 7) for number in range(BATCH + 3)]
    found = Embedder(lengths)(texts)
    assert calls == [BATCH, 3]
    assert found.dtype == np.float32
    assert found[:, 0].tolist() == [len(text) for text in texts]


def test_long_texts_come_in_short_batches():
    """One request may send a million characters, and is stopped between two batches."""
    calls = []

    def lengths(texts):
        calls.append(sum(map(len, texts)))
        return [[len(text), 1.0] for text in texts]

    texts = ["a" * 1000] * 200 + ["b" * (2 * LONGEST_BATCH), "c"]
    found = Embedder(lengths)(texts)
    assert found[:, 0].tolist() == [len(text) for text in texts]
    assert sorted(calls)[-2] <= LONGEST_BATCH < sorted(calls)[-1] == 2 * LONGEST_BATCH


def test_who_waits_for_a_turn_can_be_stopped():
    began, let_go, stop = threading.Event(), threading.Event(), Stop()

    def slow(texts):
        began.set()
        assert let_go.wait(60)
        return np.ones((len(texts), 2))

    embedder = Embedder(slow)
    busy = threading.Thread(target=embedder, args=(["a"],))
    busy.start()
    try:
        assert began.wait(60)
        stop.set()
        with stop.stoppable(), pytest.raises(StoppedError):
            embedder(["b"])
    finally:
        let_go.set()
        busy.join()
    assert embedder(["c"]).shape == (1, 2)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda texts: np.ones((1, 3)), "returned 1 rows for 2 texts"),
        (lambda texts: np.ones(2), "must have shape"),
        (lambda texts: [["a"], ["b"]], "real numbers"),
        (lambda texts: np.full((2, 3), np.nan), "NaN or infinity"),
    ],
)
def test_what_a_function_returns_is_checked(function, message):
    with pytest.raises(InputError, match=message):
        Embedder(function)(["a", "b"])


def test_errors_of_a_function_are_its_own():
    def fails(texts):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        Embedder(fails)(["a"])


@pytest.mark.parametrize(
    "name",
    ["", "wordllama2", "openai:", "openai:../x", "sentence-transformers/", 7,
     "sentence-transformers/../x", "sentence-transformers//tmp/model", "sentence-transformers/a/b/c"],  # noqa: E501
)  # fmt: skip
def test_names_that_are_none(name):
    with pytest.raises(InputError, match=r"embedder is .* must be one of wordllama"):
        Embedder(name)


def test_wordllama():
    pytest.importorskip("wordllama")
    near, far, same = Embedder("wordllama")(["a chess game", "tax law", "A game of chess"])
    assert near @ same > near @ far + 0.3
    assert np.linalg.norm([near, far, same], axis=1) == pytest.approx(1, abs=1e-5)


def test_models_leave_the_logging_of_the_process_alone():
    """In a new process, since a package is imported once."""
    pytest.importorskip("wordllama")
    code = (
        "import logging; from rankfold.inputs.embedder import Embedder; "
        "Embedder('wordllama')(['chess']); "
        "print(logging.getLogger().handlers, logging.getLogger().level)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (ended.stdout, ended.stderr) == (f"[] {logging.WARNING}\n", "")


class Api(BaseHTTPRequestHandler):
    """Answers as the embeddings of OpenAI do, with the length of each text."""

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status = 200 if asked["model"] == "text-embedding-3-small" else 404
        rows = [
            {"object": "embedding", "index": place, "embedding": [float(len(text)), 1.0]}
            for place, text in enumerate(asked["input"])
        ]
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        body = {"object": "list", "data": rows, "model": asked["model"], "usage": usage}
        content = json.dumps(body if status == 200 else {"error": {"message": "no such model"}})
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content.encode())

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture
def openai_api(monkeypatch):
    pytest.importorskip("openai")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Api)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{server.server_port}/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    yield
    server.shutdown()
    thread.join()
    server.server_close()


def test_openai_is_asked_by_its_own_package(openai_api):
    found = Embedder("openai:text-embedding-3-small")(["chess", "go"])
    assert found.tolist() == [[5.0, 1.0], [2.0, 1.0]]


def test_a_model_that_fails_is_named(openai_api):
    with pytest.raises(EmbedderError, match=r"'openai:none' has failed: .*no such model"):
        Embedder("openai:none")(["chess"])

"""Makes vectors of texts by the package of OpenAI, and a server here that answers as OpenAI's."""

import json
import os
import subprocess
import sys
from base64 import b64encode
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import numpy as np

from rankfold.errors import EmbedderError
from rankfold.inputs import Embedder

MODEL = "text-embedding-3-small"
NOTES = ["a chess engine", "undo in an editor", "a board game", "mail in a terminal"]


def vector(text):
    """Return the numbers of letters."""
    return np.array([text.count(letter) for letter in "abcdeghimnorstu"], np.float32)


class Api(BaseHTTPRequestHandler):
    """Answers in the form that was asked for: base64 of float32, or numbers."""

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        known = self.path == "/v1/embeddings" and asked["model"] == MODEL
        known &= self.headers["Authorization"] == "Bearer secret"
        in_base64 = asked.get("encoding_format") == "base64"
        body = {
            "object": "list",
            "model": asked["model"],
            "usage": {"prompt_tokens": 1, "total_tokens": 1},
            "data": [
                {
                    "object": "embedding",
                    "index": place,
                    "embedding": b64encode(vector(text)).decode()
                    if in_base64
                    else vector(text).tolist(),
                }
                for place, text in enumerate(asked["input"])
            ],
        }
        content = json.dumps(body if known else {"error": {"message": "no such model"}}).encode()
        self.send_response(200 if known else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        """Say nothing."""


def rankfold(*words):
    """Run a command that must say nothing beside what it was asked for."""
    command = [sys.executable, "-m", "rankfold", *words]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, ""), ended.stderr
    return ended.stdout


server = ThreadingHTTPServer(("127.0.0.1", 0), Api)
Thread(target=server.serve_forever, daemon=True).start()
os.environ |= {
    "OPENAI_API_KEY": "secret",
    "OPENAI_BASE_URL": f"http://127.0.0.1:{server.server_port}/v1",
}
assert (Embedder(f"openai:{MODEL}")(NOTES) == [vector(text) for text in NOTES]).all()
Path("notes.csv").write_text("text\n" + "\n".join(NOTES))
embedded = ("--embedder", f"openai:{MODEL}", "--text-column", "text")
assert "15 features" in rankfold("index", "build", "notes.csv", *embedded, "-o", "notes")
asked = rankfold("query", "notes", "--text", "a board game", "--format", "csv", "--top", "1")
assert asked.splitlines()[1].startswith("1,2,")
try:
    Embedder("openai:none")(["chess"])
except EmbedderError as error:
    assert "'openai:none' has failed" in str(error)  # noqa: PT017
    assert "no such model" in str(error)  # noqa: PT017
else:
    raise AssertionError

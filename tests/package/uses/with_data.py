"""Downloads a data set, from a server of this machine."""

import hashlib
import os
from dataclasses import replace
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import numpy as np
from scipy.io import savemat

from rankfold import datasets
from rankfold.datasets.files import FILES

os.environ["NO_PROXY"] = "127.0.0.1"
NAME = "yale_diff.mat"
points = np.random.default_rng(0).random((40, 3))
distances = np.linalg.norm(points[:, None] - points, axis=2)
savemat(NAME, {"Diff": distances, "labels": np.repeat(np.arange(4), 10)[:, None]})

with ThreadingHTTPServer(("127.0.0.1", 0), SimpleHTTPRequestHandler) as server:
    Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}/{NAME}"
    digest = hashlib.sha256(Path(NAME).read_bytes()).hexdigest()
    FILES[NAME] = replace(FILES[NAME], urls=(address,), sha256=digest)
    assert datasets.load("yale").X.shape == (40, 40)
    server.shutdown()

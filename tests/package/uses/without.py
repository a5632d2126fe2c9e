"""Asks for what every extra is for, and prints what is said where it is not installed."""

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np

from rankfold import RAN, Collection, Index, datasets
from rankfold.errors import MissingExtraError
from rankfold.explanation import draw_explanation, explain
from rankfold.inputs import Embedder, read_points

X = datasets.load("digits").X[:100]
Path("images").mkdir()
for name in ("points.parquet", "points.hdf5", "images/one.png"):
    Path(name).write_bytes(b"something")
np.save("points.npy", X)


def draw():
    """Draw an explanation."""
    draw_explanation(explain(RAN(10).fit(X), query=0, point=10), "why.png")


def serve():
    """Serve nothing but the examples."""
    words = [sys.executable, "-m", "rankfold", "serve", "--port", "0"]
    ended = subprocess.run(words, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    raise MissingExtraError("serve", "serve") if "extra 'serve'" in ended.stderr else ValueError


def integration(name):
    """Return what imports an integration."""
    return lambda: import_module(f"rankfold.integrations.{name}")


USES = {
    "data": lambda: datasets.load("yale"),
    "plot": draw,
    "tables": lambda: read_points("points.parquet"),
    "hdf5": lambda: read_points("points.hdf5"),
    "images": lambda: read_points("images"),
    "map": lambda: Index.build(X, layout="graph"),
    "serve": serve,
    "client": lambda: import_module("rankfold.client"),
    "postgresql": lambda: Collection.open("postgresql://127.0.0.1:1/nothing", "photos"),
    "milvus": lambda: Collection.open("milvus:///./vectors.db", "photos"),
    "qdrant": lambda: Collection.open("qdrant:///./vectors", "photos"),
    "dask": lambda: import_module("rankfold.cluster").build_index("points.npy", "made"),
    "wordllama": lambda: Embedder("wordllama")(["chess"]),
    "sentence-transformers": lambda: Embedder("sentence-transformers/tiny")(["chess"]),
    "openai": lambda: Embedder("openai:text-embedding-3-small")(["chess"]),
    "langchain": integration("langchain"),
    "llama-index": integration("llama_index"),
    "haystack": integration("haystack"),
    "rerankers": integration("rerankers"),
    "lancedb": integration("lancedb"),
    "pandas": lambda: Index.build(X).query(0).to_frame(),
    "pyterrier": integration("pyterrier"),
}

for extra, use in USES.items():
    try:
        use()
    except MissingExtraError as error:
        print(f"{extra}: {error}")  # noqa: T201

"""Test collections of search: documents, questions, and judgements of what answers which.

They lie in the folder that RANKFOLD_DATA names, as ``ir_NAME.json.gz`` (``doc_ids``, ``docs``,
``query_ids``, ``queries`` and, by query, the ``qrels``) and ``ir_NAME_MODEL.npz`` (``X`` and
``Q``: vectors of documents and questions, for cosine).
"""

import gzip
import json
import os
from pathlib import Path

import numpy as np

from rankfold.evaluation import SearchCollection

COLLECTIONS = ("med", "cranfield")
MODELS = {"wl256": "WordLlama", "minilm384": "all-MiniLM-L6-v2"}


def load(name, model="minilm384", folder=None):
    """Return a collection with the vectors of a model."""
    folder = Path(folder or os.environ["RANKFOLD_DATA"])
    with gzip.open(folder / f"ir_{name}.json.gz", "rt", encoding="utf-8") as file:
        texts = json.load(file)
    with np.load(folder / f"ir_{name}_{model}.npz") as vectors:
        X, Q = (vectors[key].astype(np.float32) for key in ("X", "Q"))
    qrels = {query: graded(judged) for query, judged in texts["qrels"].items()}
    names = texts["doc_ids"], texts["query_ids"]
    return SearchCollection(f"{name}, {MODELS[model]}", X, Q, qrels, "cosine", *names)


def graded(judged):
    """Return grades by document; a list holds the relevant ones."""
    return dict(judged) if isinstance(judged, dict) else dict.fromkeys(judged, 1)

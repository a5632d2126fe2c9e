"""Images of digits that stand for texts: ``digit 17`` is embedded as the 17th image."""

import asyncio
import threading

import numpy as np

from rankfold import Index, datasets

N_KNOWN = 400
DATA = datasets.load("digits")
X, LABELS = DATA.X, DATA.labels


def vector(text):
    return X[int(text.split()[1])].tolist()


def texts(rows):
    return [f"digit {row}" for row in rows]


def build_index():
    """Keep the first images; those after them are left to ask with."""
    rows = range(N_KNOWN)
    payload = {"text": texts(rows), "label": LABELS[:N_KNOWN].tolist()}
    names = [f"name {row}" for row in rows]
    return Index.build(X[:N_KNOWN], names, payload, metric="cosine", n_neighbors=10)


def nearest(row, n):
    """Return rows of the nearest images by angle, as a plain search finds them."""
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    return np.argsort(-(unit[:N_KNOWN] @ unit[row]), kind="stable")[:n]


class Threads:
    """Notes in which threads an index is asked, or candidates are ranked."""

    def __init__(self, monkeypatch, owner, name):
        self.seen, original = [], getattr(owner, name)

        def noted(*given, **named):
            self.seen.append(threading.current_thread())
            return original(*given, **named)

        monkeypatch.setattr(owner, name, noted)

    def run(self, coroutine):
        """Run a coroutine; require that none of the work was done by the thread of its loop."""
        found = asyncio.run(coroutine)
        assert self.seen
        assert threading.current_thread() not in self.seen
        self.seen.clear()
        return found

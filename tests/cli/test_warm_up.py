"""Code is compiled once, somebody is told, and it can be done ahead."""

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from numba.core.caching import FunctionCache
from numba.core.dispatcher import Dispatcher

import rankfold
from rankfold.cli.warm_up import PARTS
from rankfold.compilation import TOLD

TINY = """
from rankfold.solvers.memory import entry
@entry
def first(x):
    return x
@entry
def second(x):
    return x + 1
print(second(first(1)), second(2.0))
"""

USES = """
import numpy as np
from numba.core import event
from rankfold import RAN, Index

class Compiled(event.Listener):
    names = []
    def on_start(self, begun):
        function = begun.data["dispatcher"].py_func
        if function.__module__.startswith("rankfold."):
            self.names.append((function.__module__, function.__name__, begun.data["args"]))
    def on_end(self, ended):
        pass

event.register("numba:compile", Compiled())
rng = np.random.default_rng(0)
for n_points in (6_000, 20_001):
    X = rng.normal(size=(n_points, 3)).astype(np.float32)
    RAN(n_neighbors=5).fit(X).rank(3, top=10)
    RAN(n_neighbors=5, budget=None, fusion="none").fit(X).rank(3, top=10)
    with Index.build(X, n_neighbors=5, layout="none") as index:
        index.query(3)
        index.query(vectors=X[5] + 0.1)
        index.add(X[:3] + 0.01)
        index.query(3)
        if n_points == 6_000:
            index.learn()
            index.query(3)
print(Compiled.names)
"""


def run(words, **variables):
    return subprocess.run(
        [sys.executable, *words], env={**os.environ, **variables}, capture_output=True, text=True,
        check=True,
    )  # fmt: skip


def kernels():
    """Return all functions that are compiled and kept."""
    folder = Path(rankfold.__file__).parent
    for path in folder.rglob("*.py"):
        if "import compiled" in (text := path.read_text()) or "@entry" in text:
            name = ".".join(["rankfold", *path.relative_to(folder).with_suffix("").parts])
            for value in vars(import_module(name)).values():
                if isinstance(value, Dispatcher) and isinstance(value._cache, FunctionCache):
                    yield value


def test_every_kernel_is_compiled_ahead():
    for part in PARTS.values():
        part()
    found = list(kernels())
    assert {"answer", "polish", "solve_whole", "fill", "lift", "_refine"} <= {
        one.__name__ for one in found
    }
    assert [one.__name__ for one in found if not one.signatures] == []


def test_no_kernel_is_in_two_parts():
    """Two processes that keep types of one function at once mix them up."""
    names = [kernel.__name__ for part in PARTS.values() for kernel in part()]
    assert len(names) == len(set(names))


def test_one_line_tells_that_something_is_compiled(tmp_path):
    (tmp_path / "tiny.py").write_text(TINY)
    words = ["-c", "import rankfold.compilation as module; module.LONG = 'tiny'; import tiny"]
    variables = {
        "NUMBA_CACHE_DIR": str(tmp_path / "cache"),
        "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]),
    }
    first, again = (run(words, **variables) for _ in range(2))
    assert first.stdout == again.stdout == "2 3.0\n"
    assert first.stderr == f"{TOLD}\n"
    assert again.stderr == ""


@pytest.mark.slow
def test_what_is_compiled_ahead_is_not_compiled_again(tmp_path):
    cache = str(tmp_path)
    done = run([Path(sys.executable).with_name("rankfold"), "warm-up"], NUMBA_CACHE_DIR=cache)
    assert done.stdout == f"Everything is compiled; it is kept in {cache}.\n"
    assert done.stderr == f"{TOLD}\n"
    used = run(["-c", USES], NUMBA_CACHE_DIR=cache)
    assert used.stdout == "[]\n"
    assert TOLD not in used.stderr

"""An index whose contents follow from the number of its last change, and processes that change it.

Of five changes two add a point, one removes the oldest, one moves two, one describes two anew; one
in fifty adds a column of texts in the place of the last.
Every seventh is followed by a merge or by a new map. So whoever knows how many changes were made
knows everything that must be there.
"""

import os
import signal
import subprocess
import sys

import numpy as np
from index_cases import Expected

from rankfold import Index

N_POINTS = 25


def vector(number):
    return np.random.default_rng(number).normal(size=3).round(1)


def described(number):
    return {"price": [number], "size": [number / 2], "color": ["red"], "sold": [number % 2 == 0]}


def first():
    """Return what the index holds before all changes."""
    expected = Expected()
    for number in range(N_POINTS):
        expected.add([f"p{number}"], [vector(number)], described(number))
    return expected


def create(path):
    expected = first()
    X = np.array([expected.vectors[name] for name in expected.ids])
    Index.build(X, expected.ids, expected.columns(), path=path, n_neighbors=4).close()


def change(index, expected, number):
    """Change what an index must hold, and the index itself if there is one."""
    kind = number % 5
    if kind in (0, 1):
        ids, X, columns = [f"p{N_POINTS + number}"], vector(1000 + number)[None], described(number)
        if index is not None:
            index.add(X, ids, columns)
        expected.add(ids, X, columns)
    elif kind == 2:
        ids = expected.ids[:1]
        if index is not None:
            index.remove(ids)
        expected.remove(ids)
    elif kind == 3:
        ids, X = expected.ids[3:5], np.array([vector(2000 + number), vector(3000 + number)])
        if index is not None:
            index.update(ids, vectors=X)
        expected.move(ids, X)
    elif number % 50 == 49:
        ids, column = expected.ids[4:6], {f"note{number}": [f"of {number}", f"and {number}"]}
        if index is not None:
            index.add_columns(column, ids)
        expected.add_columns(ids, column)
    else:
        ids = expected.ids[2:4]
        if index is not None:
            index.update(ids, payload={"price": [number, -number], "color": [f"c{number}"] * 2})
        for name, price in zip(ids, (number, -number), strict=True):
            expected.payload[name] |= {"price": price, "color": f"c{number}"}


def after(number):
    """Return what the index holds after so many changes."""
    expected = first()
    for one in range(number):
        change(None, expected, one)
    return expected


def go_on(path, number):
    """Change an index without end, and tell of each change when it is safe."""
    expected = after(number)
    with Index.open(path, write=True) as index:
        sys.stdout.write(f"{os.getpid()}\n")
        while True:
            change(index, expected, number)
            number += 1
            sys.stdout.write(f"{number}\n")
            sys.stdout.flush()
            if number % 7 == 0:
                index.lay_out("pca") if number % 2 else index.save()


class Writer:
    """Processes that change an index, one after the other, each until it is killed."""

    def __init__(self, path):
        self.server = subprocess.Popen(
            [sys.executable, __file__, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def start(self, number):
        """Go on from a number of changes; return when one more is safe."""
        self.server.stdin.write(f"{number}\n")
        self.server.stdin.flush()
        self.process = int(self.server.stdout.readline())
        return int(self.server.stdout.readline())

    def kill(self):
        """Kill the process at once; return the last number that it told of, if any."""
        os.kill(self.process, signal.SIGKILL)
        told = list(iter(self.server.stdout.readline, "dead\n"))
        return max(map(int, told), default=0)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.stdin.close()
        self.server.stdout.close()
        self.server.wait()


def main(path):
    """Let a new process go on from every number that is read, until it is killed.

    It is forked from this one, so that nothing needs to be imported again.
    """
    for line in sys.stdin:
        process = os.fork()
        if not process:
            go_on(path, int(line))
        os.waitpid(process, 0)
        sys.stdout.write("dead\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1])

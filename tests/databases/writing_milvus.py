"""A process whose children change indexes in Milvus, each killed before another of its writes."""

import os
import signal
import sys
from functools import partial

import numpy as np
from databases.tables import COLUMNS, change, fill, points, settings

from rankfold.databases.milvus import Milvus
from rankfold.databases.milvus.client import Client

NAME = "digits"


def die_before(number):
    """Let the process die by its own hand before it writes, or deletes, for the n-th time."""
    left = [number]

    def guarded(done, *arguments):
        if not left[0]:
            os.kill(os.getpid(), signal.SIGKILL)
        left[0] -= 1
        done(*arguments)

    Client.write = lambda self, *rest, done=Client.write: guarded(partial(done, self), *rest)
    Client.delete = lambda self, *rest, done=Client.delete: guarded(partial(done, self), *rest)


def the_change(given):
    """Return a change that adds, removes and rewrites, and the points afterwards."""
    new = points([len(given.slots), len(given.slots) + 1], seed=3)._replace(ids=["new", 77])
    return change(given, [4, 9], new)


def work(address, action, number):
    database = Milvus(address)
    if action == "fill":
        die_before(number)
        with database.create("other", settings(), COLUMNS, replace=False) as filling:
            filling.add(points(np.arange(20)), None)
            filling.finish()
        return
    if action == "replace":
        die_before(number)
        fill(database, NAME, n=12, replace=True)
        return
    table = database.open(NAME)
    with table.writing() as writing:
        die_before(number)
        if action == "commit":
            writing.commit(the_change(points(np.arange(20)))[0])
        else:
            writing.change_payload(np.arange(20), {"color": ["blue"] * 20}, COLUMNS)
    table.close()


def main(action, addresses):
    for number, address in enumerate(addresses):
        child = os.fork()
        if not child:
            work(address, action, number)
            sys.exit()
        _, status = os.waitpid(child, 0)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(status)}\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])

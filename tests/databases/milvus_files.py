"""Files of Milvus Lite to test with."""

import subprocess
import sys

import numpy as np
from databases.tables import COLUMNS, rows, same_rows

from rankfold.databases.milvus import Milvus
from rankfold.databases.milvus.address import Address
from rankfold.databases.milvus.client import Client


def milvus_address(folder):
    """Return the address of a file of Milvus Lite in a folder, which need not be there yet."""
    return f"milvus://{folder}/test.db"


def kept_open(folder):
    """Yield a database whose file stays open: opening it for every call takes time."""
    address = milvus_address(folder)
    client = Client(Address.of(address))
    yield Milvus(address)
    client.close()


def collections(folder):
    """Return the names of all collections in the file."""
    client = Client(Address.of(milvus_address(folder)))
    names = client.collections()
    client.close()
    return names


def names_in_another_process(folder):
    """Ask another process for the names of all indexes; it writes them, or the error."""
    code = (
        "import sys; from rankfold.databases.milvus import Milvus\n"
        "try: sys.stdout.write(str(Milvus(sys.argv[1]).names()))\n"
        "except Exception as error: sys.stdout.write(f'{type(error).__name__}: {error}')"
    )
    command = [sys.executable, "-c", code, milvus_address(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=True)


def same_points(session, given):
    """Require that a session reads these points and no others, all in one state."""
    assert session.slots().tolist() == given.slots.tolist()
    assert session.points(given.slots, COLUMNS) == (given.ids, given.payload)
    assert session.find(given.ids).tolist() == given.slots.tolist()
    np.testing.assert_array_equal(session.vectors(given.slots), given.vectors)
    same_rows(session.rows(np.arange(40)), rows(given.slots, given.vectors))
    ((found, _),) = session.search(given.vectors[:1], 100)
    assert sorted(found.tolist()) == given.slots.tolist()

"""Every database that can run here; the tests of the contract ask all of them."""

from uuid import uuid4

import pytest
from databases.memory import MemoryDatabase
from databases.milvus_files import kept_open

DATABASES = {
    "memory": lambda request: MemoryDatabase(),
    "milvus": lambda request: request.getfixturevalue("milvus_file"),
}


@pytest.fixture(scope="session")
def milvus_file(tmp_path_factory):
    """Return a file of Milvus Lite that all tests of a process share."""
    yield from kept_open(tmp_path_factory.mktemp("milvus"))


@pytest.fixture(params=DATABASES)
def database(request):
    """Return a database that can hold tables."""
    return DATABASES[request.param](request)


@pytest.fixture
def name(database):
    """Return a name that no table has, and leave none of that name behind."""
    chosen = f"test {uuid4()}"
    yield chosen
    if chosen in database.names():
        database.drop(chosen)

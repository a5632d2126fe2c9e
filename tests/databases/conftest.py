"""Every database that can run here; the tests of the contract ask all of them."""

from uuid import uuid4

import pytest
from databases.memory import MemoryDatabase
from databases.milvus_files import kept_open
from databases.servers import postgresql, postgresql_address
from databases.tables import fill

from rankfold.databases.postgresql import PostgreSQL

DATABASES = {
    "memory": lambda request: MemoryDatabase(),
    "postgresql": lambda request: PostgreSQL(postgresql_address()),
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


@pytest.fixture
def server():
    """Return the PostgreSQL server that tests share."""
    return postgresql()


@pytest.fixture
def fresh(server):
    """Return the name of a database in which nothing is."""
    name = f"test_{uuid4().hex}"
    server.run(f"CREATE DATABASE {name}")
    yield name
    server.run(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def filled(server, fresh):
    """Return a function that opens the same table by any address, its points and its rows."""
    given, true = fill(PostgreSQL(server.address(fresh)), "digits")
    opened = []

    def open_table(**options):
        opened.append(PostgreSQL(server.address(fresh, **options)).open("digits"))
        return opened[-1]

    yield open_table, given, true
    for table in opened:
        table.close()

"""Every database that can run here; the tests of the contract ask all of them."""

from uuid import uuid4

import pytest
from databases.memory import MemoryDatabase
from databases.servers import postgresql_address

from rankfold.databases.postgresql import PostgreSQL

DATABASES = {
    "memory": lambda request: MemoryDatabase(),
    "postgresql": lambda request: PostgreSQL(postgresql_address()),
}


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

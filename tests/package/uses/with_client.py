"""Asks where nobody answers, and says so."""

from socket import create_server

from rankfold.client import Client
from rankfold.errors import UnreachableError

with create_server(("127.0.0.1", 0)) as server:
    address = f"http://127.0.0.1:{server.getsockname()[1]}"
with Client(address) as client:
    try:
        client.indexes()
    except UnreachableError as error:
        assert address in str(error)  # noqa: PT017
    else:
        raise AssertionError("nobody is there")

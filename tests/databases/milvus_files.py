"""Files of Milvus Lite to test with."""

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

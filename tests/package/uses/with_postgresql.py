"""Says that a server does not answer; there is none here."""

from rankfold import Collection
from rankfold.errors import UnreachableError

try:
    Collection.open("postgresql://127.0.0.1:1/nothing", "docs")
except UnreachableError as error:
    assert "127.0.0.1" in str(error)  # noqa: PT017
else:
    raise AssertionError("there is a server on port 1")

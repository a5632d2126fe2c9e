import os
import signal
from pathlib import Path

import effort  # noqa: F401
import pytest

from rankfold import datasets

NEARBY = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session", autouse=True)
def ctrl_c():
    """Let Ctrl-C work, which a shell takes from what it starts in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def folder():
    """Return the folder of data files, where it is to be had."""
    found = Path(os.environ.get("RANKFOLD_DATA") or NEARBY)
    if not found.is_dir():
        pytest.skip("RANKFOLD_DATA is not set and ../shared/data is absent")
    return found


@pytest.fixture(scope="session")
def load(request):
    """Load a data set from files, where they are to be had."""

    def load(name):
        if name in ("moons", "rings", "digits"):
            return datasets.load(name)
        return datasets.load(name, request.getfixturevalue("folder"))

    return load

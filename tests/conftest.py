import os
from pathlib import Path

import pytest

from rankfold import datasets

NEARBY = Path(__file__).resolve().parents[2] / "shared" / "data"


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

import os
import signal
from collections import Counter
from pathlib import Path

import effort  # noqa: F401
import pytest

from rankfold import datasets

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"  # is read when haystack is imported

NEARBY = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark most cases of tests that have many as slow."""
    seen = Counter()
    for item in items:
        if mark := item.get_closest_marker("one_in"):
            test = item.nodeid.partition("[")[0]
            if seen[test] % mark.args[0]:
                item.add_marker(pytest.mark.slow)
            seen[test] += 1


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

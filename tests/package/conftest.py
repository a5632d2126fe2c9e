"""What users get: the files of a release, built once, and installed into empty environments."""

import pytest
from package.environments import ROOT, UV, Environment, done

collect_ignore = ["uses"]  # scripts, which run in environments of their own


def pytest_addoption(parser):
    parser.addoption(
        "--lowest",
        action="store_true",
        help="install the lowest versions that pyproject.toml allows",
    )


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """Return the folder of the wheel and the source distribution that it was built from."""
    folder = tmp_path_factory.mktemp("built")
    done(UV, "build", "--quiet", "--out-dir", folder, ROOT)
    return folder


@pytest.fixture(scope="session")
def wheel(built):
    return next(built.glob("*.whl"))


@pytest.fixture(scope="session")
def sdist(built):
    return next(built.glob("*.tar.gz"))


@pytest.fixture(scope="session")
def bare(wheel, tmp_path_factory, pytestconfig):
    """Return an environment without any extra."""
    folder = tmp_path_factory.mktemp("bare")
    return Environment(folder, wheel, lowest=pytestconfig.getoption("lowest"))

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from rankfold import Index, datasets
from rankfold.cli import main


@pytest.fixture
def call(tmp_path, monkeypatch):
    """Run a command in an empty folder, within this process."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")

    def call(*words, **options):
        return CliRunner().invoke(main, list(map(str, words)), **options)

    return call


@pytest.fixture(scope="session")
def script():
    """The command that users run."""
    return Path(sys.executable).with_name("rankfold")


@pytest.fixture
def shell(script, tmp_path):
    """Run a line of Bash in the same folder, in processes of its own."""

    def shell(line, **variables):
        path = f"{script.parent}{os.pathsep}{os.environ['PATH']}"
        return subprocess.run(
            ["bash", "-o", "pipefail", "-c", line],  # noqa: S607
            cwd=tmp_path,
            env={**os.environ, "PATH": path, **variables},
            capture_output=True,
            text=True,
            timeout=300,
        )

    return shell


@pytest.fixture(scope="session")
def moons():
    return datasets.load("moons")


@pytest.fixture(scope="session")
def built(moons, tmp_path_factory):
    """An index of two moons whose ids are texts, numbers that look like texts, and both."""
    path = tmp_path_factory.mktemp("built") / "moons"
    ids = [f"m{row}" for row in range(len(moons.X))]
    ids[:4] = ["7", 7, 8, "09"]
    payload = {"moon": moons.labels, "note": [f"note {row}" for row in range(len(moons.X))]}
    Index.build(moons.X, ids, payload, path=path).close()
    return path


@pytest.fixture
def index(built, call, tmp_path):
    """A copy of it, named ``moons``."""
    shutil.copytree(built, tmp_path / "moons")
    return "moons"


@pytest.fixture
def vectors(call, tmp_path, moons):
    """Its vectors as ``moons.npy``."""
    np.save(tmp_path / "moons.npy", moons.X)
    return "moons.npy"

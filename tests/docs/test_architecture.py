"""ARCHITECTURE.md names files, classes and functions that are there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "rankfold"
NAMES = set(re.findall(r"`([^`\s]+)`", (ROOT / "ARCHITECTURE.md").read_text()))
FILES = [*PACKAGE.rglob("*.py"), *(ROOT / "tests").rglob("*.py")]
CODE = "\n".join(path.read_text() for path in FILES)
MADE = re.findall(r"^\s*(?:class|def) (\w+)|^([A-Z][\w, ]+)(?::.*?)? = ", CODE, re.MULTILINE)
DEFINED = {name for pair in MADE for part in pair for name in re.split(r", ?", part)}


@pytest.mark.parametrize("name", sorted(n for n in NAMES if re.fullmatch(r"[\w/]+(\.py|/)", n)))
def test_files_and_folders_are_there(name):
    assert (PACKAGE / name).exists() or (ROOT / name).exists()


@pytest.mark.parametrize("name", sorted(n for n in NAMES if re.fullmatch(r"_?[A-Z]\w+(\.\w+)?", n)))
def test_classes_and_their_members_are_there(name):
    assert set(name.split(".")) <= DEFINED

"""Every public name stands in the reference, once, and under a name that can be imported."""

import re
import tomllib
from collections import Counter
from importlib import import_module
from pathlib import Path

import pytest

import rankfold

ROOT = Path(__file__).parents[2]
DESCRIBED = Counter(
    name
    for page in sorted((ROOT / "docs" / "api").glob("*.md"))
    for name in re.findall(r"^::: (\S+)$", page.read_text(), re.MULTILINE)
)
WHOLE = ["rankers", "evaluation", "explanation", "index", "inputs", "service", "cluster", "storage"]


def resolved(name):
    """Return what a dotted name stands for."""
    package, _, last = name.rpartition(".")
    if not package:
        return import_module(name)
    try:
        return getattr(resolved(package), last)
    except AttributeError:
        return import_module(name)


def identity(name):
    found = resolved(name)
    return getattr(found, "__module__", ""), getattr(found, "__qualname__", name)


def test_every_public_name_is_described_once():
    assert {f"rankfold.{name}": 1 for name in rankfold.__all__}.items() <= DESCRIBED.items()


@pytest.mark.parametrize("package", WHOLE)
def test_names_of_public_packages_are_described(package):
    described = {identity(name) for name in DESCRIBED}
    names = [f"rankfold.{package}.{name}" for name in resolved(f"rankfold.{package}").__all__]
    tables = [name for name in names if not hasattr(resolved(name), "__qualname__")]
    things = [name for name in names if name not in tables]
    assert {identity(name) for name in things} <= described
    lasts = {name.rpartition(".")[2] for name in DESCRIBED}
    assert {name.rpartition(".")[2] for name in tables} <= lasts


def test_nothing_is_described_twice():
    twice = Counter(identity(name) for name in DESCRIBED)
    assert [found for found, times in twice.items() if times > 1] == []
    assert [name for name, times in DESCRIBED.items() if times > 1] == []


def test_every_method_of_an_index_is_listed():
    page = (ROOT / "docs" / "api" / "index_and_results.md").read_text()
    page = page.partition("::: rankfold.Collection")[0]
    listed = re.findall(r"^        - (\w+)$", page, re.MULTILINE)
    public = [name for name in dir(rankfold.Index) if not name.startswith("_")]
    facts = [name for name in public if isinstance(getattr(rankfold.Index, name), bool)]
    assert sorted(listed) == [name for name in public if name not in facts]


def test_citation_has_the_version_of_the_package():
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"version = {{{version}}}" in (ROOT / "docs" / "citation.md").read_text()

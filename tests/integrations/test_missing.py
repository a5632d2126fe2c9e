"""Without its package, an integration names the extra that brings it."""

import sys
from importlib import import_module

import pytest

from rankfold.errors import MissingExtraError


@pytest.mark.parametrize(
    ("name", "package", "extra"),
    [
        ("langchain", "langchain_core", "langchain"),
        ("llama_index", "llama_index", "llama-index"),
        ("haystack", "haystack", "haystack"),
        ("rerankers", "rerankers", "rerankers"),
        ("lancedb", "lancedb", "lancedb"),
        ("pyterrier", "pandas", "pyterrier"),
    ],
)
def test_the_extra_is_named(monkeypatch, name, package, extra):
    for module in list(sys.modules):
        if module == package or module.startswith(f"{package}."):
            monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.setitem(sys.modules, package, None)  # what Python takes for not installed
    monkeypatch.delitem(sys.modules, f"rankfold.integrations.{name}", raising=False)
    with pytest.raises(MissingExtraError, match=f"the extra '{extra}' brings it: pip install"):
        import_module(f"rankfold.integrations.{name}")

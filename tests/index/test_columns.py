"""Columns that are added to the payload of an index later."""

import signal
import subprocess
import sys

import numpy as np
import pytest

from rankfold import Index, InputError
from rankfold.storage import Store, store


@pytest.fixture
def path(tmp_path):
    X = np.arange(12.0)[:, None] ** 1.5
    ids = [f"p{row}" for row in range(12)]
    Index.build(X, ids, {"name": [f"tea {row}" for row in range(12)]}, path=tmp_path / "i").close()
    return tmp_path / "i"


def whole(path):
    with Store.open(path) as opened:
        opened.verify()
        return opened.columns


def test_columns_are_there_for_queries_filters_and_words(path):
    with Index.open(path) as reader, Index.open(path, write=True) as index:
        index.remove("p3")
        index.add([[100.0]], ["new"], {"name": ["mate"]})
        index.add_columns({"price": list(range(12)), "note": ["dark roast"] * 12})
        index.add_columns({"sold": [True, False]}, ids=["p5", "p4"])
        for one in (index, reader):
            found = one.query("p0", top=20, where="sold")
            assert (found.ids, found.payload["price"]) == (["p5"], [4])  # p3 is gone
            assert one.query("p0", top=20, where="sold = false").ids == ["p4"]
            assert len(one.find("roast", top=20).ids) == 12
            assert one.query("p11", top=1, where="price = 11").ids == ["new"]
        index.update("p0", payload={"note": ["green"], "price": [2.5]})
        index.add([[101.0]], ["last"], {"price": [7]})
        index.save()  # a merge
        assert reader.find("green").ids == ["p0"]
        assert reader.info()["columns"] == {
            "name": "text", "price": "number", "note": "text", "sold": "boolean"
        }  # fmt: skip
    assert list(whole(path)) == ["name", "price", "note", "sold"]


@pytest.mark.parametrize(
    ("payload", "ids", "message"),
    [
        ({"name": ["x"] * 12}, None, "there already: 'name'; update"),
        ({"price": [1]}, None, "12"),
        ({"price": [1]}, ["nobody"], "nobody"),
        ({"price": [1, 2]}, ["p1", "p1"], "more than once"),
        ({"price": [1, "x"]}, ["p1", "p2"], "holds values of type int, str"),
        ({f"c{n}": [1] for n in range(500)}, ["p1"], "501 columns"),
        ({"id": [1]}, ["p1"], "the name of the ids"),
    ],
)
def test_what_does_not_fit_changes_nothing(path, payload, ids, message):
    with Index.open(path, write=True) as index, pytest.raises(InputError, match=message):
        index.add_columns(payload, ids)
    assert list(whole(path)) == ["name"]


def test_a_failure_in_the_middle_leaves_what_was_there(path, monkeypatch):
    def fail(*_):
        raise OSError("disk full")

    with Index.open(path, write=True) as index:
        with monkeypatch.context() as patch:
            patch.setattr(store, "change_points", fail)
            with pytest.raises(OSError, match="disk full"):
                index.add_columns({"price": [1], "note": ["x"]}, ids=["p1"])
        assert index.query("p0", top=1).ids == ["p1"]
        index.add_columns({"price": [1]}, ids=["p1"])
    assert list(whole(path)) == ["name", "price"]


def test_a_process_that_is_killed_in_the_middle_leaves_what_was_there(path):
    code = (
        "import os, signal, sys\n"
        "from rankfold import Index\n"
        "from rankfold.storage import store\n"
        "store.change_points = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        "Index.open(sys.argv[1], write=True).add_columns({'note': ['x'] * 12})\n"
    )
    killed = subprocess.run([sys.executable, "-c", code, path], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert list(whole(path)) == ["name"]
    with Index.open(path, write=True) as index:
        index.add_columns({"note": ["x"] * 12})
    assert list(whole(path)) == ["name", "note"]

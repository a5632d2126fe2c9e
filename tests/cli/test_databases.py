"""Commands over a database: a real PostgreSQL, and a file of Milvus Lite."""

import json

import numpy as np
import pytest
from databases.servers import postgresql

from rankfold import Index
from rankfold.databases.milvus.address import Address
from rankfold.databases.milvus.client import Client

SECRET = "never-to-be-shown"  # noqa: S105
FOLDER = ("--engine", "")


@pytest.fixture(params=["postgresql", "milvus"])
def engine(request, monkeypatch, tmp_path):
    """Name a database in which nothing is, as users do; return its address."""
    if request.param == "postgresql":
        server, name = postgresql(), f"commands_{tmp_path.name.replace('-', '_').lower()}"
        server.run(f'CREATE DATABASE "{name}"')
        monkeypatch.setenv("RANKFOLD_ENGINE", server.address(name))
        yield server.address(name)
        server.run(f'DROP DATABASE "{name}" WITH (FORCE)')
    else:
        address = f"milvus://{tmp_path}/vectors.db"
        monkeypatch.setenv("RANKFOLD_ENGINE", address)
        client = Client(Address.of(address))  # opening the file anew takes long
        yield address
        client.close()


@pytest.fixture
def ok(call):
    """Run a command that must succeed, and return what it printed."""

    def ok(*words, **options):
        result = call(*words, **options)
        assert result.exit_code == 0, result.output
        return result.stdout

    return ok


def answers(ok, *words):
    return json.loads(ok("query", *words, "--format", "json"))


def test_an_index_is_built_asked_changed_and_deleted(ok, call, engine, vectors, tmp_path):
    assert ok("index", "build", vectors, "-o", "moons").startswith("moons: 400 points, 2 features")
    assert not (tmp_path / "moons").exists()
    ok("index", "build", vectors, "-o", "moons", "--engine", "")
    assert (tmp_path / "moons").is_dir()
    found, expected = answers(ok, "moons", "--id", 7), answers(ok, "moons", "--id", 7, *FOLDER)
    assert [row["id"] for row in found["results"]] == [row["id"] for row in expected["results"]]
    assert found["solution"]["round_trips"] > 0
    assert expected["solution"]["round_trips"] == 0
    new = tmp_path / "new.csv"
    new.write_text("id,x,y\n900,0.1,0.2\n901,0.3,0.4\n")
    assert ok("index", "add", "moons", new) == "moons: added 2 points, now 402\n"
    new.write_text("id,x,y\n901,0.5,0.4\n")
    assert ok("index", "update", "moons", new) == "moons: updated 1 point\n"
    assert ok("index", "remove", "moons", 900, 3) == "moons: removed 2 points, now 400\n"
    assert ok("index", "check", "moons") == "moons: 400 points, no damage found\n"
    known = json.loads(ok("index", "info", "moons", "--format", "json"))
    assert (known["points"], known["engine"]) == (400, "exact")
    assert ok("index", "list") == "moons\n"
    asked = call("index", "drop", "moons", input="n\n")
    assert (asked.exit_code, ok("index", "list")) == (1, "moons\n")
    assert ok("index", "drop", "moons", input="y\n") == "moons: deleted\n"
    assert ok("index", "list") == ""
    assert call("index", "drop", "moons", "--yes").exit_code == 1


def test_an_index_is_copied_there_and_back(ok, call, engine, index, tmp_path):
    assert ok("index", "copy", index, "-o", "there") == "there: copied 400 points of moons\n"
    taken = call("index", "copy", index, "-o", "there")
    assert taken.exit_code == 1
    assert "--replace" in taken.stderr
    ok("index", "copy", index, "-o", "there", "--replace")
    ok("index", "copy", "there", "-o", "back", "--from", engine, *FOLDER)
    ok("index", "check", "back", *FOLDER)
    with Index.open(tmp_path / index) as one, Index.open(tmp_path / "back") as other:
        assert one.ids == other.ids
        assert one.payload(one.ids) == other.payload(other.ids)
        np.testing.assert_array_equal(one.places()[1], other.places()[1])
        assert one.query("m9", top=30).ids == other.query("m9", top=30).ids


def test_a_database_searches_as_it_is_told(ok, engine, vectors):
    ok("index", "build", vectors, "-o", "own", "--lists", "database", "--neighbors", 5)
    ok("index", "build", vectors, "-o", "graph", "--search", "hnsw", "--neighbors", 5)
    with Index.open("own", engine=engine) as own, Index.open("graph", engine=engine) as graph:
        assert own.info()["engine"] == "exact"
        assert graph.info()["engine"] == "hnsw"
        assert own.query(7, top=20).ids == graph.query(7, top=20).ids
    ok("index", "check", "own")


@pytest.mark.parametrize("command", ["merge", "map"])
def test_what_is_for_folders_says_so(ok, call, engine, index, command):
    ok("index", "copy", index, "-o", "there")
    result = call("index", command, "there")
    assert result.exit_code == 1
    assert "'there' is in a database, not in a folder" in result.stderr


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["index", "list"], 2, "--engine, or in RANKFOLD_ENGINE"),
        (["index", "drop", "x", "--yes"], 2, "--engine, or in RANKFOLD_ENGINE"),
        (["index", "build", "moons.npy", "-o", "x", "--search", "hnsw"], 2, "in a database"),
        (["index", "info", "x", "--engine", f"mysql://me:{SECRET}@host/db"], 1, "mysql://me@host"),
        (["index", "info", "x", "--engine", f"postgresql://me:{SECRET}@localhost:1/db"], 1,
         "postgresql://me@localhost:1/db cannot be reached"),
        (["index", "info", "x", "--engine", "milvus:///nowhere/file.db"], 1, "no index 'x'"),
        (["serve", "x", "x", "--engine", "milvus:///nowhere/file.db"], 2, "name it once"),
        (["serve", "two words", "--engine", "milvus:///nowhere/file.db"], 2, "letters, digits"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_said(call, monkeypatch, vectors, words, status, message):
    monkeypatch.delenv("RANKFOLD_ENGINE", raising=False)
    result = call(*words)
    assert (result.exit_code, result.stdout) == (status, "")
    assert message in result.stderr
    assert SECRET not in result.stderr

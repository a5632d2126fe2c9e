"""Commands over a collection: a real PostgreSQL."""

import json

import psycopg
import pytest
from databases.servers import postgresql

from rankfold import datasets

SECRET = "never-to-be-shown"  # noqa: S105


@pytest.fixture
def address(tmp_path):
    """Return the address of a database with a table of digits."""
    digits = datasets.load("digits")
    server, name = postgresql(), f"commands_{tmp_path.name.replace('-', '_').lower()}"
    server.run(f'CREATE DATABASE "{name}"')
    server.run("CREATE EXTENSION vector", name)
    server.run("CREATE TABLE docs (id int PRIMARY KEY, digit int, v vector(64))", name)
    with psycopg.connect(server.address(name)) as connection:
        pairs = zip(digits.labels[:300].tolist(), digits.X[:300].tolist(), strict=True)
        rows = [(place, digit, json.dumps(vector)) for place, (digit, vector) in enumerate(pairs)]
        connection.cursor().executemany("INSERT INTO docs VALUES (%s, %s, %s)", rows)
    yield server.address(name)
    server.run(f'DROP DATABASE "{name}" WITH (FORCE)')


@pytest.fixture
def ok(call):
    """Run a command that must succeed, and return what it printed."""

    def ok(*words, **options):
        result = call(*words, **options)
        assert result.exit_code == 0, result.output
        return result.stdout

    return ok


def tables(address):
    with psycopg.connect(address) as connection:
        found = connection.execute("SELECT relname FROM pg_class WHERE relname LIKE 'docs%'")
        return sorted(name for (name,) in found.fetchall() if "pkey" not in name)


def test_a_collection_is_attached_asked_refreshed_and_detached(ok, address):
    where = (address, "--table", "docs")
    told = ok("attach", *where, "--vector", "v", "--dry-run")
    assert "300" in told
    assert tables(address) == ["docs"]
    assert ok("attach", *where, "--neighbors", 8).startswith("docs: 300 points, 8 neighbours")
    assert tables(address) == ["docs", "docs_rankfold"]
    words = ("--id", 7, "--where", "digit = 7", "--format", "json")
    found = json.loads(ok("query", *where, *words))
    assert {row["payload"]["digit"] for row in found["results"]} == {7}
    assert found["solution"]["round_trips"] > 0
    groups = ("--id", 7, "--group-by", "digit", "--top", 4, "--format", "json")
    found = json.loads(ok("query", *where, *groups))
    assert len({row["payload"]["digit"] for row in found["results"]}) == 4
    with psycopg.connect(address) as connection:
        connection.execute("DELETE FROM docs WHERE id = 9")
    assert ok("refresh", *where).startswith("docs: 0 new, 1 removed, 0 moved")
    assert json.loads(ok("info", *where, "--format", "json"))["points"] == 299
    assert ok("detach", *where) == "docs: detached\n"
    assert tables(address) == ["docs"]


def test_mistakes_are_told_without_passwords(call, address):
    for words, said in [
        (("attach", f"postgresql://ann:{SECRET}@127.0.0.1:1/shop", "--table", "docs"), "reached"),
        (("attach", f"mysql://ann:{SECRET}@host/shop", "--table", "docs"), "mysql://ann@host/shop"),
        (("attach", address, "--table", "nothing"), "has no table"),
        (("attach", address, "--table", "docs", "--scheduler", "nowhere"), "scheduler"),
        (("query", address, "--table", "docs", "--id", 1), "attach it first"),
        (("query", address, "--id", 1), "--table"),
        (("query", "folder", "--id", 1, "--embedder", "wordllama"), "--embedder is for a table"),
    ]:
        result = call(*words)
        assert result.exit_code != 0
        assert said in result.stderr, result.stderr
        assert SECRET not in result.output

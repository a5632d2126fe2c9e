"""What only PostgreSQL has: schemas, transactions, SQL that must not be broken out of."""

import json
import signal
import sys
from threading import Thread, Timer

import numpy as np
import psycopg
import pytest
from databases.servers import PostgreSQLServer, postgresql
from psycopg import sql
from running_service import wait_until

from rankfold import Collection
from rankfold.databases.backend import explained
from rankfold.databases.postgresql import PostgreSQL
from rankfold.errors import DatabaseError, InputError, MissingExtraError, UnreachableError
from rankfold.parallel import Stop, StoppedError

N = 200
EVIL = ['a"; DROP TABLE victim; --', "b'; DROP TABLE victim; --", "c %s %(keys)s {key}", "d.e"]


def fill(server, database, names=("public", "docs", "id", "v"), n=N, kind="int"):
    """Make a table of points; its names may be odd."""
    schema, table, key, vector = names
    X = np.random.default_rng(0).normal(size=(n, 4))
    parts = [sql.Identifier(*some) for some in ((schema,), (schema, table), (key,), (vector,))]
    with psycopg.connect(server.address(database), autocommit=True) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(parts[0]))
        create = f"CREATE TABLE {{}} ({{}} {kind} PRIMARY KEY, {{}} vector(4), note text)"
        connection.execute(sql.SQL(create).format(*parts[1:]))
        doubled = sql.Identifier(*(part.replace("%", "%%") for part in (schema, table)))
        insert = sql.SQL("INSERT INTO {} VALUES (%s, %s, 'x')").format(doubled)
        rows = [(row, json.dumps(vector)) for row, vector in enumerate(X.tolist())]
        connection.cursor().executemany(insert, rows)


def cut_off(server, database):
    """End all connections to a database."""
    others = f"WHERE datname = '{database}' AND pid <> pg_backend_pid()"
    server.run(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity {others}")  # noqa: S608


@pytest.fixture
def database():
    server, name = postgresql(), f"own_{np.random.default_rng().integers(2**62)}"
    server.run(f"CREATE DATABASE {name}")
    yield server, name
    server.run(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.mark.parametrize(
    ("place", "evil"),
    [
        pytest.param(
            place, evil, id=f"{name}-{evil}", marks=() if place == row else pytest.mark.slow
        )
        for place, name in enumerate(["schema", "table", "key", "vector"])
        for row, evil in enumerate(EVIL)
    ],
)
def test_no_name_is_taken_for_sql(database, place, evil):
    server, name = database
    server.run("CREATE TABLE victim (id int)", name)
    names = ["public", "docs", "id", "v"]
    names[place] = evil if place else evil.replace(".", "_")
    fill(server, name, names)
    schema, table, key, vector = names
    where = {"vector": vector, "key": key, "n_neighbors": 5}
    with Collection.attach(server.address(name), f"{schema}.{table}", **where) as collection:
        assert len(collection.query(3, top=5, where="note = 'x'")) == 5
        assert collection.payload([3]) == {"note": ["x"]}
        assert collection.refresh()["rewritten"] == 0
        collection.detach()
    assert server.run("SELECT count(*) FROM victim", name) == [(0,)]


def test_no_key_or_value_is_taken_for_sql(database):
    server, name = database
    server.run("CREATE TABLE victim (id int)", name)
    fill(server, name, kind="text")
    with Collection.attach(server.address(name), "docs", n_neighbors=5) as collection:
        for evil in EVIL:
            with pytest.raises(InputError, match="no point"):
                collection.query(evil)
            assert len(collection.query("3", where=("note = %(a)s", {"a": evil}))) == 0
        with pytest.raises(InputError, match="refuses"):
            collection.query("3", where="note = 'x'); DROP TABLE victim; --")
    assert server.run("SELECT count(*) FROM victim", name) == [(0,)]


def test_an_attachment_is_there_as_a_whole_or_not_at_all(database, monkeypatch):
    server, name = database
    fill(server, name)
    write = PostgreSQL.write_rows

    def cut(self, rows):
        write(self, rows)
        cut_off(server, name)

    monkeypatch.setattr(PostgreSQL, "write_rows", cut)
    with pytest.raises(UnreachableError, match="try again"):
        Collection.attach(server.address(name), "docs", n_neighbors=5)
    monkeypatch.undo()
    assert server.run("SELECT to_regclass('docs_rankfold')", name) == [(None,)]
    with Collection.attach(server.address(name), "docs", n_neighbors=5) as collection:
        answer = collection.query(3)
        server.run("DELETE FROM docs WHERE id = 9", name)
        monkeypatch.setattr(PostgreSQL, "write_rows", cut)
        with pytest.raises(UnreachableError):
            collection.refresh()
        monkeypatch.undo()
        assert collection.info()["points"] == N
        assert collection.query(3).scores.tolist() == answer.scores.tolist()
        assert collection.refresh()["removed"] == 1


def test_a_server_that_is_killed_in_the_middle_of_a_refresh(monkeypatch):
    server = PostgreSQLServer(durable=True)
    fill(server, "postgres")
    collection = Collection.attach(server.address(), "docs", n_neighbors=5)
    server.run("DELETE FROM docs WHERE id < 5")
    monkeypatch.setattr(PostgreSQL, "remove_rows", lambda *_: server.stop(signal.SIGQUIT))
    with pytest.raises(UnreachableError):
        collection.refresh()
    monkeypatch.undo()
    with pytest.raises(UnreachableError, match="does not answer"):
        collection.query(7)
    server.start()
    assert collection.info()["points"] == N
    assert collection.refresh()["removed"] == 5
    assert len(collection.query(7)) == 10
    collection.close()
    server.remove()


def test_a_server_that_is_killed_in_the_middle_of_attaching(monkeypatch):
    server = PostgreSQLServer(durable=True)
    fill(server, "postgres")
    monkeypatch.setattr(PostgreSQL, "rows_at_once", 50)
    store, parts = PostgreSQL.store, []

    def store_until_the_crash(self, records):
        store(self, records)
        parts.append(records)
        if len(parts) == 3:
            server.stop(signal.SIGQUIT)

    monkeypatch.setattr(PostgreSQL, "store", store_until_the_crash)
    with pytest.raises(UnreachableError, match="try again"):
        Collection.attach(server.address(), "docs", n_neighbors=5)
    monkeypatch.undo()
    server.start()
    assert server.run("SELECT count(*) FROM docs") == [(N,)]
    assert server.run("SELECT to_regclass('docs_rankfold')") == [(None,)]
    with Collection.attach(server.address(), "docs", n_neighbors=5) as collection:
        assert len(collection.query(7)) == 10
    server.remove()


def test_a_server_that_ends_without_a_code_is_out_of_reach_and_no_matter_of_passwords():
    said = (
        "consuming input failed: FATAL:  terminating connection due to immediate shutdown command"
    )
    text, shown = PostgreSQL.told(psycopg.OperationalError(said))
    error = explained(text, shown, "here", PostgreSQL.errors)
    assert isinstance(error, UnreachableError)
    assert str(error).endswith("try again when it runs.")


def test_connections_that_were_cut_off_meanwhile_are_not_noticed(database):
    server, name = database
    fill(server, name)
    with Collection.attach(server.address(name), "docs", n_neighbors=5) as collection:
        before = collection.query(3).ids
        cut_off(server, name)
        assert collection.query(3).ids == before


def test_threads_ask_at_the_same_time_while_others_refresh(database):
    server, name = database
    fill(server, name)
    faults = []
    with Collection.attach(server.address(name), "docs", n_neighbors=5) as collection:

        def ask():
            try:
                for point in range(20, 60):
                    assert len(collection.query(point, top=5)) == 5
            except BaseException as fault:
                faults.append(fault)

        threads = [Thread(target=ask) for _ in range(3)]
        for thread in threads:
            thread.start()
        for gone in range(3):
            server.run(f"DELETE FROM docs WHERE id = {gone}", name)  # noqa: S608
            collection.refresh()
        for thread in threads:
            thread.join()
        assert faults == []
        assert collection.info()["points"] == N - 3


def test_it_is_opened_again_as_it_was_attached(database):
    server, name = database
    fill(server, name)
    server.run("ALTER TABLE docs ADD w vector(4)", name)
    with pytest.raises(InputError, match="'v', 'w'"):
        Collection.attach(server.address(name), "docs")
    how = {"vector": "v", "metric": "cosine", "n_neighbors": 5}
    with Collection.attach(server.address(name), "docs", **how) as collection:
        answer = collection.query(3)
    with Collection.open(server.address(name), "docs") as collection:
        assert collection.database.metric == "cosine"
        assert collection.query(3).ids == answer.ids
    with pytest.raises(InputError, match="built for metric 'cosine'"):
        Collection.open(server.address(name), "docs", vector="v", metric="euclidean")


def test_a_table_without_a_usable_key_is_told(database):
    server, name = database
    server.run("CREATE EXTENSION vector", name)
    server.run("CREATE TABLE docs (id date PRIMARY KEY, v vector(2))", name)
    with pytest.raises(DatabaseError, match=r"no column of keys .*uuid.* 'id'; it has: none"):
        Collection.attach(server.address(name), "docs")
    with pytest.raises(DatabaseError, match="has no table"):
        Collection.attach(server.address(name), "nothing")


def test_a_slow_server_is_given_up(database):
    server, name = database
    fill(server, name)
    Collection.attach(server.address(name), "docs", n_neighbors=5).close()
    slow = server.address(name, options="-cstatement_timeout%3D300ms")
    with Collection.open(slow, "docs") as collection:
        with psycopg.connect(server.address(name)) as other:
            other.execute("LOCK TABLE docs_rankfold")
            with pytest.raises(UnreachableError, match=r"statement timeout.*allow it more"):
                collection.query(3)
        assert len(collection.query(3)) == 10


def test_what_nobody_waits_for_is_cancelled(database):
    server, name = database
    fill(server, name)
    Collection.attach(server.address(name), "docs", n_neighbors=5).close()
    here = f"datname = '{name}' AND wait_event_type = 'Lock'"
    waiting = f"SELECT count(*) FROM pg_stat_activity WHERE {here}"  # noqa: S608
    with (
        Collection.open(server.address(name), "docs") as collection,
        psycopg.connect(server.address(name)) as other,
    ):
        other.execute("LOCK TABLE docs, docs_rankfold IN ACCESS EXCLUSIVE MODE")
        for ask in (lambda: collection.query(3), lambda: [*collection.database.scan()]):
            stop = Stop()
            timer = Timer(0.3, stop.set)
            timer.start()
            with stop.stoppable(), pytest.raises(StoppedError):
                ask()
            wait_until(lambda: other.execute(waiting).fetchone() == (0,))
        other.rollback()
        assert len(collection.query(3)) == 10


def test_without_the_driver_the_extra_is_named(monkeypatch):
    monkeypatch.delitem(sys.modules, "rankfold.databases.postgresql")
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtraError, match="the extra 'postgresql' brings it"):
        Collection.open("postgresql://127.0.0.1:1/nothing", "photos")


def test_no_message_shows_the_password(database):
    server, name = database
    server.run("DROP ROLE IF EXISTS guarded")
    server.run("CREATE ROLE guarded LOGIN PASSWORD 'right'")
    nowhere = "postgresql://guarded:s3cret@127.0.0.1:1/shop?password=s3cret2"
    for address in (server.address(name, "guarded", "s3cret"), nowhere):
        with pytest.raises((DatabaseError, UnreachableError)) as caught:
            Collection.open(address, "docs")
        assert "s3cret" not in f"{caught.value} {caught.value.__cause__}"
        assert "guarded@" in str(caught.value)
    for unreadable in ("postgresql://guarded:s3@cret@host/shop", "postgresql://guarded:s3/c%ret@h"):
        with pytest.raises(InputError) as wrong:
            Collection.open(unreadable, "docs")
        assert "s3" not in str(wrong.value)

"""Connections that are lost, servers that stop, others in the way: nothing is half-written."""

import signal
import time
from threading import Event, Thread

import numpy as np
import psycopg
import pytest
from databases.cutting import cut_after
from databases.servers import PostgreSQLServer
from databases.tables import COLUMNS, change, fill, no_points, points, same_rows, settings

from rankfold.check import DatabaseError, UnreachableError
from rankfold.databases.postgresql import PostgreSQL

EVERYBODY = np.arange(20)


def cut_off(server, database):
    """End all connections to a database."""
    others = f"WHERE datname = '{database}' AND pid <> pg_backend_pid()"
    server.run(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity {others}")  # noqa: S608


def read(table):
    with table.reading() as session:
        return session.rows(EVERYBODY)


def test_a_connection_lost_in_the_middle_of_a_session(server, fresh, filled):
    open_table, _, true = filled
    table = open_table()
    with table.reading() as session:
        cut_off(server, fresh)
        with pytest.raises(UnreachableError, match="try again"):
            session.rows(EVERYBODY)
    same_rows(read(table), true)


def test_connections_that_were_lost_meanwhile_are_not_noticed(server, fresh, filled):
    open_table, _, true = filled
    table = open_table()
    with table.reading(), table.reading():
        pass
    cut_off(server, fresh)
    same_rows(read(table), true)
    cut_off(server, fresh)
    with table.writing() as writing:
        same_rows(writing.rows(EVERYBODY), true)


def test_a_connection_lost_before_a_commit(server, fresh, filled):
    open_table, given, true = filled
    table = open_table()
    made, _ = change(given, [3], no_points())
    with table.writing() as writing:
        cut_off(server, fresh)
        with pytest.raises(UnreachableError, match="try again"):
            writing.commit(made)
    same_rows(read(table), true)


def test_a_commit_that_fails_at_the_very_end(server, fresh, filled):
    open_table, given, true = filled
    ((number,),) = server.run("SELECT number FROM rankfold_tables", fresh)
    server.run(
        "CREATE FUNCTION leave() RETURNS trigger LANGUAGE plpgsql AS "
        "'BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END'",
        fresh,
    )
    server.run(
        f"CREATE CONSTRAINT TRIGGER leaving AFTER INSERT ON rankfold_{number}_changes "
        "DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION leave()",
        fresh,
    )
    table = open_table()
    made, _ = change(given, [3], no_points())
    with table.writing() as writing, pytest.raises(UnreachableError, match="nothing was changed"):
        writing.commit(made)
    same_rows(read(table), true)


def test_a_commit_whose_answer_is_lost_is_found_to_be_made(server, filled):
    open_table, given, _ = filled
    made, after = change(given, [3], no_points())
    table = open_table()
    with cut_after(server, b"COMMIT\0") as folder, open_table(host=folder).writing() as writing:
        version = writing.head.version
        assert writing.commit(made) == version + 1
    with table.reading() as session:
        assert session.head.version == version + 1
        assert session.slots().tolist() == after.slots.tolist()


def test_a_commit_whose_fate_is_unknown(server, filled):
    open_table, given, _ = filled
    made, _ = change(given, [3], no_points())
    with (
        cut_after(server, b"COMMIT\0", for_good=True) as folder,
        open_table(host=folder).writing() as writing,
        pytest.raises(DatabaseError, match="unknown whether") as caught,
    ):
        writing.commit(made)
    assert not isinstance(caught.value, UnreachableError)  # trying again is not safe


def test_a_slow_server(server, fresh, filled):
    open_table, _, true = filled
    table = open_table(timeout=0.3)
    ((number,),) = server.run("SELECT number FROM rankfold_tables", fresh)
    with psycopg.connect(server.address(fresh)) as other:
        other.execute(f"LOCK TABLE rankfold_{number}_points")
        with pytest.raises(UnreachableError, match=r"longer than 0\.3 seconds.*timeout="):
            read(table)
    same_rows(read(table), true)


def test_a_writer_who_waits_too_long(filled):
    open_table, given, _ = filled
    patient, hasty = open_table(), open_table(timeout=0.3)
    with patient.writing() as writing:
        with pytest.raises(DatabaseError, match="others are using the index"), hasty.writing():
            pytest.fail("two writers at once")
        version = writing.commit(change(given, [3], no_points())[0])
    with hasty.writing() as writing:
        assert writing.head.version == version


def test_a_standby_is_read_and_says_where_to_write():
    primary = PostgreSQLServer()
    given, true = fill(PostgreSQL(primary.address()), "digits")
    standby = PostgreSQLServer(primary=primary)
    table, source = (PostgreSQL(s.address()).open("digits") for s in (standby, primary))
    same_rows(read(table), true)
    with pytest.raises(DatabaseError, match="address of the primary"), table.writing():
        pytest.fail("a standby lets write")
    with pytest.raises(DatabaseError, match="address of the primary"):
        fill(PostgreSQL(standby.address()), "digits", replace=True)
    with source.writing() as writing:
        version = writing.commit(change(given, [3], no_points())[0])
    wait_until(lambda: heads(table) == (version, 20, 19))
    for part in (table, source):
        part.close()
    standby.remove()
    primary.remove()


def heads(table):
    with table.reading() as session:
        return session.head[:3]


def wait_until(holds):
    end = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_fill_whose_last_answer_is_lost_is_found_to_be_done(server, fresh):
    PostgreSQL(server.address(fresh)).check_place("digits", replace=False)
    with cut_after(server, b"COMMIT\0") as folder:
        fill(PostgreSQL(server.address(fresh, host=folder)), "digits")
    assert PostgreSQL(server.address(fresh)).names() == ["digits"]


def test_an_index_that_someone_deletes(server, fresh, filled):
    open_table, _, true = filled
    table, database = open_table(), PostgreSQL(server.address(fresh))
    with table.reading() as session:
        database.drop("digits")
        same_rows(session.rows(EVERYBODY), true)  # what is being read stays
    with pytest.raises(DatabaseError, match="someone has deleted it"):
        read(table)
    fill(database, "digits")
    same_rows(read(table), true)


def test_readers_outlive_a_replacement_and_then_all_old_tables_go(server, fresh, filled):
    open_table, _, true = filled
    table, database = open_table(), PostgreSQL(server.address(fresh))
    with table.reading() as session:
        _, others = fill(database, "digits", n=12, replace=True)
        same_rows(session.rows(EVERYBODY), true)
        same_rows(read(table), others)
    fill(database, "digits", n=15, replace=True)
    kept = server.run("SELECT relname FROM pg_class WHERE relname ~ '^rankfold_.*_points$'", fresh)
    assert len(kept) == 1


def test_readers_see_one_index_or_the_other_while_it_is_replaced(server, fresh, filled):
    open_table, _, _ = filled
    table, database, done = open_table(), PostgreSQL(server.address(fresh)), Event()
    seen, faults = set(), []

    def read_on():
        while not done.is_set():
            try:
                with table.reading() as session:
                    assert len(session.rows(EVERYBODY)) == session.head.n_alive
                    seen.add(session.head.n_alive)
            except BaseException as fault:
                faults.append(fault)
                return

    threads = [Thread(target=read_on) for _ in range(2)]
    for thread in threads:
        thread.start()
    for n in (12, 15, 18):
        fill(database, "digits", n=n, replace=True)
    done.set()
    for thread in threads:
        thread.join()
    assert faults == []
    assert seen <= {20, 12, 15, 18}


def test_two_who_fill_the_same_name(server, fresh):
    database = PostgreSQL(server.address(fresh))
    with database.create("digits", settings(), COLUMNS, replace=False) as filling:
        filling.add(points(np.arange(4)), None)
        fill(database, "digits")
        with pytest.raises(DatabaseError, match="has an index 'digits' already"):
            filling.finish()
    assert database.names() == ["digits"]


def test_a_server_that_stops_and_starts_again():
    server = PostgreSQLServer()
    database = PostgreSQL(server.address())
    _, true = fill(database, "digits")
    table = database.open("digits")
    same_rows(read(table), true)
    server.stop()
    with pytest.raises(UnreachableError, match="cannot be reached"):
        read(table)
    server.start()
    same_rows(read(table), true)
    with database.create("letters", settings(), COLUMNS, replace=False) as filling:
        filling.add(points(np.arange(4)), None)
        server.stop(signal.SIGQUIT)
        with pytest.raises(UnreachableError):
            filling.finish()
    server.start()
    assert database.names() == ["digits"]
    assert server.run("SELECT count(*) FROM pg_class WHERE relname LIKE 'rankfold%points'") == [
        (1,)
    ]
    same_rows(read(table), true)
    table.close()
    server.remove()

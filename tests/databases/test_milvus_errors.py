"""What Milvus cannot do, and how it says so."""

import socket

import numpy as np
import pymilvus
import pytest
from databases.milvus_files import (
    collections,
    milvus_address,
    names_in_another_process,
    same_points,
)
from databases.tables import (
    COLUMNS,
    change,
    fill,
    no_points,
    points,
    rows,
    same_rows,
    settings,
    some,
)
from databases.writing_milvus import NAME, the_change
from milvus_lite.server_manager import server_manager_instance

from rankfold.check import DatabaseError, InputError, UnreachableError
from rankfold.databases.milvus import Milvus, client, heads, writing
from rankfold.databases.milvus.address import Address
from rankfold.databases.milvus.client import Client
from rankfold.databases.milvus.packing import pack_row


@pytest.fixture
def database(tmp_path):
    return Milvus(milvus_address(tmp_path))


@pytest.fixture
def filled(database):
    """Return an open table, its points and its rows."""
    given, true = fill(database, NAME)
    table = database.open(NAME)
    yield table, given, true
    table.close()


def test_a_point_that_very_many_list():
    width = np.zeros(6)
    close = pack_row(3, width, width, np.arange(40_000) * 7)
    assert len(close["sources"]) < 65_535
    apart = np.cumsum(np.random.default_rng(0).integers(1, 50_000, 40_000))
    with pytest.raises(DatabaseError, match="slot 3 is listed by 40000 points"):
        pack_row(3, width, width, apart)


def test_payload_that_is_too_long(database):
    given = some(points(np.arange(1)), np.arange(1))
    given.payload["color"][0] = "a" * 70_000
    with (
        database.create(NAME, settings(), COLUMNS, replace=False) as filling,
        pytest.raises(InputError, match="65535"),
    ):
        filling.add(given, None)
    assert database.names() == []


def test_vectors_of_another_length(filled):
    table, given, _ = filled
    wrong = points([20], n_features=4)
    with table.writing() as changing, pytest.raises(InputError, match=r"\(1, 3\)"):
        changing.commit(change(given, [], no_points())[0]._replace(added=wrong))
    with table.reading() as reading, pytest.raises(InputError, match="have 4 values"):
        reading.search(wrong.vectors, 3)


def test_answers_that_are_too_large_are_asked_for_in_parts(filled):
    table, _, true = filled
    uri = table._client._client._config.uri
    limit = {"grpc.max_receive_message_length": 2000}
    table._client._client = pymilvus.MilvusClient(uri, dedicated=True, grpc_options=limit)
    with table.reading() as reading:
        same_rows(reading.rows(np.arange(20)), true)


def test_ids_are_found_in_parts_where_payload_is_long(filled):
    table, given, _ = filled
    longest = 60_000
    with table.writing() as changing:
        values = {"color": ["a" * longest] * 20}
        changing.change_payload(given.slots, values, COLUMNS)
    uri = table._client._client._config.uri
    limit = {"grpc.max_receive_message_length": 4 * longest}
    table._client._client = pymilvus.MilvusClient(uri, dedicated=True, grpc_options=limit)
    with table.reading() as reading:
        assert reading.find(given.ids).tolist() == given.slots.tolist()


def test_a_name_that_is_not_there(database):
    fill(database, NAME)
    with pytest.raises(DatabaseError, match=r"no index 'dogits'.*there are: 'digits'"):
        database.open("dogits")


def test_a_collection_that_somebody_dropped(tmp_path, database):
    fill(database, NAME)
    lost = next(name for name in collections(tmp_path) if name.endswith("_rows"))
    client = Client(Address.of(milvus_address(tmp_path)))
    client.drop(lost)
    client.close()
    with pytest.raises(DatabaseError, match=f"lacks its collection '{lost}'"):
        database.open(NAME)


def test_a_list_that_is_damaged(tmp_path, database):
    fill(database, NAME)
    name = next(name for name in collections(tmp_path) if name.endswith("_rows"))
    client = Client(Address.of(milvus_address(tmp_path)))
    stamps = {"cell": 6, "born": 0, "gone": False, "reach": 0.0, "spare": [0.0, 0.0]}
    for lists, sources in (("AAAA", ""), ("A", "AAAA")):
        client.write(name, [{**stamps, "lists": lists, "sources": sources}])
        table = database.open(NAME)
        with table.reading() as reading:
            assert len(reading.rows(np.array([2, 4]))) == 2
            with pytest.raises(DatabaseError, match="damaged: a list cannot be read"):
                reading.rows(np.array([3]))
        table.close()
    client.close()


def test_lists_of_another_width(database):
    given = points(np.arange(9))
    with (
        database.create(NAME, settings(), COLUMNS, replace=False) as filling,
        pytest.raises(InputError, match="width 5, but must have width 6"),
    ):
        filling.add(given, rows(given.slots, given.vectors, stored=5))


def test_a_file_that_is_not_there_is_not_made(tmp_path, database):
    assert database.names() == []
    for ask in (database.open, database.drop):
        with pytest.raises(DatabaseError, match="no such file"):
            ask(NAME)
    assert list(tmp_path.iterdir()) == []


def test_a_table_that_was_closed(database):
    fill(database, NAME)
    table = database.open(NAME)
    table.close()
    with pytest.raises(DatabaseError, match="open it again"), table.reading():
        pass


def test_a_head_that_is_damaged(tmp_path, database):
    fill(database, NAME)
    client = Client(Address.of(milvus_address(tmp_path)))
    client.write("rankfold_heads", [{"key": f"index/{NAME}", "text": "{}", "spare": [0.0, 0.0]}])
    client.close()
    with pytest.raises(DatabaseError, match="damaged"):
        database.open(NAME)


def test_two_writers_at_once_are_noticed(filled, database):
    table, given, _ = filled
    made, _ = the_change(given)
    with table.writing() as changing:
        confirm = changing._replace_head

        def interrupted(token, state):
            other = writing.MilvusWriting(table._client, NAME, changing._state, changing.head)
            other._announce()
            confirm(token, state)

        changing._replace_head = interrupted
        with pytest.raises(DatabaseError, match="someone else"):
            changing.commit(made)
    with table.reading() as reading:
        same_points(reading, given)


def test_a_file_that_another_process_has_open(tmp_path, database):
    fill(database, NAME)
    tables = [database.open(NAME) for _ in range(2)]
    tables[0].close()
    process = names_in_another_process(tmp_path)
    assert process.stdout.startswith("UnreachableError")
    assert "open in another process" in process.stdout
    assert process.stderr == ""
    tables[1].close()
    assert names_in_another_process(tmp_path).stdout == f"['{NAME}']"


def test_a_server_that_is_not_there():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(UnreachableError, match="does not answer") as caught:
        Milvus(f"milvus://me:secret@127.0.0.1:{port}").names()
    assert "secret" not in str(caught.value)


def test_a_server_that_goes_away(tmp_path, database):
    _, true = fill(database, NAME)
    table = database.open(NAME)
    with table.reading() as reading:
        server_manager_instance.release_server(str(tmp_path / "test.db"))
        with pytest.raises(UnreachableError, match="does not answer"):
            reading.rows(true.slots)
    table.close()
    again = database.open(NAME)
    with again.reading() as reading:
        same_rows(reading.rows(true.slots), true)
    again.close()


def test_an_answer_that_takes_too_long(filled, monkeypatch):
    table, given, _ = filled
    many = np.tile(given.vectors, (200, 1))  # a few would be answered before anybody looks at time
    monkeypatch.setattr(client, "WAITING", 1e-4)
    with (
        pytest.raises(UnreachableError, match=r"does not answer \(.*[Dd]eadline.*\)"),
        table.reading() as reading,
    ):
        reading.search(many, 3)


def test_an_index_that_appears_unconfirmed_stays(database, monkeypatch):
    """The answer of a server may be lost after it has done what it was asked."""
    write = heads.Heads.write

    def unconfirmed(self, name, state):
        write(self, name, state)
        raise UnreachableError("no answer")

    fill(database, NAME)
    with monkeypatch.context() as patched:
        patched.setattr(heads.Heads, "write", unconfirmed)
        with pytest.raises(UnreachableError):
            fill(database, NAME, n=12, replace=True)
    table = database.open(NAME)
    with table.reading() as reading:
        same_points(reading, points(np.arange(12)))
    table.close()


def test_a_collection_that_cannot_be_made_leaves_none(tmp_path, database):
    wrong = settings(n_features=0)
    with (
        pytest.raises(DatabaseError),
        database.create(NAME, wrong, COLUMNS, replace=False),
    ):
        pass
    assert collections(tmp_path) == ["rankfold_heads"]


def test_a_file_that_cannot_be(tmp_path):
    with pytest.raises(DatabaseError, match="no folder"):
        Milvus(f"milvus://{tmp_path}/nowhere/a.db").check_place(NAME, replace=False)
    (tmp_path / "plain.db").write_text("no folder")
    with pytest.raises(DatabaseError, match="cannot be opened by Milvus Lite"):
        Milvus(f"milvus://{tmp_path}/plain.db").names()


@pytest.mark.parametrize(
    "address",
    ["milvus://", "milvus:///a.txt", "postgresql://a/b", "milvus://a:b", "milvus://h:1/a/b"],
)
def test_addresses_that_cannot_be_read(address):
    with pytest.raises(InputError, match="must look like"):
        Milvus(address)

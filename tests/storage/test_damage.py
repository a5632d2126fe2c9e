"""Files that are cut off, altered, missing or foreign are told from good ones."""

import random
import shutil
import sqlite3
import zlib

import growing_store as growing
import pytest

from rankfold.errors import StorageError
from rankfold.storage import Store
from rankfold.storage.database import checksum


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return a store with arrays, pending changes and several pages of points."""
    path = tmp_path_factory.mktemp("damage") / "store"
    growing.create(path)
    with Store.open(path, write=True) as store:
        for _ in range(12):
            growing.grow(store)
        growing.merge(store)
        for _ in range(2):
            growing.grow(store)
    return path


@pytest.fixture
def copy(whole, tmp_path):
    return shutil.copytree(whole, tmp_path / "copy")


def tamper(path, *statements):
    connection = sqlite3.connect(path / "index.sqlite")
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


def sign(path):
    """Give a database that was tampered with the checksums that belong to it."""
    connection = sqlite3.connect(path / "index.sqlite")
    connection.create_function("checksum", -1, lambda *values: checksum(values))
    segments = connection.execute("SELECT * FROM segments ORDER BY name").fetchall()
    connection.execute("UPDATE manifest SET segments = ?", (checksum(segments),))
    connection.execute(
        "UPDATE manifest SET crc32 = "
        "checksum(format, version, generation, sequence, merged, segments, settings, columns)"
    )
    connection.commit()
    connection.close()


def names(path):
    return sorted(str(file.relative_to(path)) for file in path.rglob("*") if file.stat().st_size)


def test_there_are_three_files(copy):
    assert [n for n in names(copy) if "." in n] == [
        "index.sqlite", "segments/bulk-2.npy", "segments/values-2.npy"
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["index.sqlite", "segments/bulk-2.npy", "segments/values-2.npy"])
@pytest.mark.parametrize("share", [0.0, 0.001, 0.1, 0.5, 0.9, 0.9999])
def test_files_that_were_cut_off(copy, name, share):
    content = (copy / name).read_bytes()
    (copy / name).write_bytes(content[: int(len(content) * share)])
    with pytest.raises(StorageError, match=name.split("/")[-1]):
        Store.open(copy)


@pytest.mark.parametrize("name", ["segments/bulk-2.npy", "segments/values-2.npy"])
def test_altered_segments_are_always_told(copy, name):
    content = bytearray((copy / name).read_bytes())
    places = random.Random(0)
    for place in [0, 6, 8, 20, len(content) - 1, *places.choices(range(len(content)), k=25)]:
        before = content[place]
        content[place] ^= 1 << places.randrange(8)
        (copy / name).write_bytes(content)
        with pytest.raises(StorageError, match=r"checksum \d+, but \d+ was written"):
            Store.open(copy)
        content[place] = before
    (copy / name).write_bytes(content + b"\0")
    with pytest.raises(StorageError, match="bytes, but"):
        Store.open(copy)


@pytest.mark.parametrize("seed", [0, 1, 12, 27])
def test_an_altered_database_is_told_or_works(copy, seed):
    places = random.Random(seed)
    file = copy / "index.sqlite"
    content = bytearray(file.read_bytes())
    told = 0
    for _ in range(60):
        # Half of the places lie where the tables are, half in the arrays of changes.
        place = places.randrange(len(content) if places.random() < 0.5 else 9 * 4096)
        before = content[place]
        content[place] ^= 1 << places.randrange(8)
        file.write_bytes(content)
        try:
            with Store.open(copy) as store:
                store.verify()
                growing.check(store)
        except StorageError:
            told += 1
        content[place] = before
        for left in ("index.sqlite-wal", "index.sqlite-shm"):
            (copy / left).unlink(missing_ok=True)
    assert told > 0


def test_a_missing_segment_is_named(copy):
    (copy / "segments" / "bulk-2.npy").unlink()
    with pytest.raises(StorageError, match=r"bulk-2.npy' is missing; restore it from a copy"):
        Store.open(copy)


def test_a_segment_of_another_form_is_told(copy):
    tamper(copy, "UPDATE segments SET shape = '[3, 4]' WHERE name = 'bulk'")
    sign(copy)
    with pytest.raises(StorageError, match=r"shape \[30000\], but <i8 values of shape \[3, 4\]"):
        Store.open(copy)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("UPDATE manifest SET settings = '{}'", "manifest does not have the checksum"),
        ("DELETE FROM manifest", "manifest does not have the checksum"),
        ("UPDATE segments SET n_bytes = 3", "list of segments does not have the checksum"),
        ("DELETE FROM segments", "list of segments does not have the checksum"),
        ("DELETE FROM segments WHERE name = 'bulk'", "list of segments does not have the checksum"),
        ("CREATE TRIGGER t AFTER INSERT ON points BEGIN DELETE FROM points; END", "its tables"),
        ("DROP TABLE points", "its tables"),
        ("PRAGMA user_version = 2", "format version 2, but this rankfold reads version 1; upgrade"),
        ("PRAGMA user_version = 0", "its format version is 0"),
        ("PRAGMA application_id = 5", "is not a rankfold index"),
    ],
)
def test_a_tampered_database_is_told(copy, statement, message):
    tamper(copy, statement)
    for write in (False, True):
        with pytest.raises(StorageError, match=message):
            Store.open(copy, write=write)


def test_what_sqlite_says_of_damage_is_one_line(copy):
    file = copy / "index.sqlite"
    content = bytearray(file.read_bytes())
    for page in range(1, 9):
        content[4096 * page + 7] ^= 0x3A  # the number of bytes that lie idle between its cells
    file.write_bytes(content)
    with Store.open(copy) as store, pytest.raises(StorageError, match="damaged") as caught:
        store.verify()
    assert "\n" not in str(caught.value)


def test_what_sqlite_quotes_of_damage_is_one_line_without_codes_for_terminals(copy):
    tamper(copy, "UPDATE manifest SET settings = CAST(x'7b0a1b5b33316dff' AS TEXT)")
    with pytest.raises(StorageError, match="damaged") as caught:
        Store.open(copy)
    assert str(caught.value).isprintable()


POINTS = {
    "payload": ["UPDATE points SET c0 = 3 WHERE slot = 4"],
    "id": ["UPDATE points SET id = 'x' WHERE slot = 4"],
    "checksum": ["UPDATE points SET crc32 = NULL WHERE slot = 4"],
    "slot": [
        "UPDATE points SET slot = -1 WHERE slot = 4",
        "UPDATE points SET slot = 4 WHERE slot = 5",
        "UPDATE points SET slot = 5 WHERE slot = -1",
    ],
}


@pytest.mark.parametrize("kind", POINTS)
def test_altered_points_are_told_by_all_who_read_or_write_them(copy, kind):
    with Store.open(copy) as store:
        store.verify()
        name = store.ids_of([4])
    tamper(copy, *POINTS[kind])
    told = pytest.raises(StorageError, match=r"slot [45] has another checksum")
    with Store.open(copy, write=True) as store:
        assert store.ids_of([3, 6])
        for read in (store.ids_of, store.payload_of, store.points_of):
            with told:
                read([4])
        if kind != "id":
            with told:
                store.slots_of(name)
            with told:
                store.holds(name)
        with told:
            store.verify()
        version = store.version
        with told:
            store.change_payload([4], {"price": [8]})
        with told:  # other checksums for all, since the column holds floats from then on
            store.change_payload([3], {"price": [0.5]})
        with told:
            store.append({}, removed=[4])
        store.append({}, removed=[3])
        kept = [slot for slot in range(30) if slot in _slots(copy)]
        with told:
            store.merge({}, {}, kept)
        assert store.version == version._replace(sequence=version.sequence + 1)


def _slots(path):
    connection = sqlite3.connect(path / "index.sqlite")
    slots = [slot for (slot,) in connection.execute("SELECT slot FROM points")]
    connection.close()
    return slots


SIGNED = {
    "a name with a path": ["UPDATE segments SET name = '../../x', file = '../../x-2.npy' "
                           "WHERE name = 'bulk'"],
    "a file elsewhere": ["UPDATE segments SET file = '../../secret.npy' WHERE name = 'bulk'"],
    "a generation with a path": [
        "UPDATE manifest SET generation = '/../../x'",
        "UPDATE segments SET file = name || '-/../../x.npy'",
    ],
    "no size": ["UPDATE segments SET n_bytes = NULL"],
    "no sequence": ["UPDATE manifest SET sequence = NULL"],
    "a negative generation": ["UPDATE manifest SET generation = -1"],
    "columns that are none": ["UPDATE manifest SET columns = '7'"],
    "columns of another kind": ["UPDATE manifest SET columns = '[[\"price\", \"blob\"]]'"],
    "columns without a name": ["UPDATE manifest SET columns = '[[7, \"text\"]]'"],
    "columns that are no JSON": ["UPDATE manifest SET columns = '['"],
    "a blob for the settings": ["UPDATE manifest SET columns = x'00ff'"],
}  # fmt: skip


@pytest.mark.parametrize("case", SIGNED)
def test_what_somebody_else_wrote_and_signed_is_told(copy, case):
    shutil.copy(copy / "segments" / "bulk-2.npy", copy.parent / "x-2.npy")
    shutil.copy(copy / "segments" / "bulk-2.npy", copy.parent / "x.npy")
    tamper(copy, *SIGNED[case])
    sign(copy)
    for write in (False, True):
        with pytest.raises(StorageError, match=r"damaged|foreign") as caught:
            Store.open(copy, write=write)
        assert "\n" not in str(caught.value)


def test_a_view_in_the_place_of_the_manifest_is_never_asked(copy):
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"
    tamper(copy, "DROP TABLE manifest", f"CREATE VIEW manifest AS {endless}")
    with pytest.raises(StorageError, match="its tables"):
        Store.open(copy)


@pytest.mark.parametrize(("dtype", "shape"), [("|O", "[1]"), ("<f8", "7"), ("nonsense", "[1]"),
                                              ("<f8", "[2]"), ("i4,f4", "[1]")])  # fmt: skip
def test_changes_that_somebody_else_wrote_and_signed_are_told(copy, dtype, shape):
    data = bytes(8)
    crc32 = zlib.crc32(data, zlib.crc32(f"bulk {dtype} {shape}".encode()))
    connection = sqlite3.connect(copy / "index.sqlite")
    connection.execute(
        "UPDATE change_arrays SET dtype = ?, shape = ?, data = ?, crc32 = ? WHERE name = 'bulk'",
        (dtype, shape, data, crc32),
    )
    connection.commit()
    connection.close()
    with (
        Store.open(copy) as store,
        store.reading(),
        pytest.raises(StorageError, match="no index holds"),
    ):
        list(store.changes())


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM changes WHERE sequence = 13",
        "DELETE FROM change_arrays WHERE name = 'bulk'",
        "UPDATE change_arrays SET data = zeroblob(8)",
        "UPDATE change_arrays SET dtype = '<f8'",
        "UPDATE change_arrays SET data = NULL",
        "UPDATE changes SET generation = 1",
    ],
)
def test_tampered_changes_are_told(copy, statement):
    tamper(copy, statement)
    damage = pytest.raises(StorageError, match=r"is damaged: .*change")
    with Store.open(copy) as store, store.reading(), damage:
        list(store.changes())


def test_what_is_no_store(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "text").write_text("hello")
    for name in ("nonsense", "foreign", "nothing"):
        (tmp_path / name).mkdir()
    (tmp_path / "nonsense" / "index.sqlite").write_text("hello " * 1000)
    (tmp_path / "nothing" / "index.sqlite").touch()
    connection = sqlite3.connect(tmp_path / "foreign" / "index.sqlite")
    connection.execute("CREATE TABLE mine (x)")
    connection.close()
    expected = {
        "absent": "there is no index at",
        "empty": "holds no 'index.sqlite'",
        "text": "is a file",
        "nonsense": "index.sqlite' cannot be used",
        "foreign": "is not a rankfold index",
        "nothing": "is not a rankfold index",
    }
    for name, message in expected.items():
        for write in (False, True):
            with pytest.raises(StorageError, match=message):
                Store.open(tmp_path / name, write=write)
    connection = sqlite3.connect(tmp_path / "foreign" / "index.sqlite")
    assert connection.execute("PRAGMA journal_mode").fetchall() == [("delete",)]
    connection.close()
    assert not (tmp_path / "foreign" / "writer.lock").exists()

"""What goes into a store comes out of it, and what cannot go in is named."""

import os
import shutil
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import growing_store as growing
import numpy as np
import pytest
from effort import examples
from hypothesis import given
from hypothesis import strategies as st

from rankfold.errors import InputError, StorageError
from rankfold.storage import Store

ARRAYS = {
    "vectors": np.arange(6, dtype=np.float32).reshape(3, 2),
    "flags": np.array([True, False]),
    "none": np.empty((0, 4), dtype=np.int16),
    "single": np.array(7.5),
    "turned": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "big_endian": np.arange(3, dtype=">i4"),
}
PAYLOAD = {
    "price": [1, 2.5, None],
    "Price": np.array([1.0, np.nan, 3.0], dtype=np.float32),
    "count": np.array([1, 2, 3], dtype=np.uint8),
    "sold": [True, None, False],
    'a "b" `c`; --': ["x", "", None],
    "nothing": [None, None, float("nan")],
}


@pytest.fixture
def path(tmp_path):
    Store.create(tmp_path / "store", ARRAYS, {"k": [1, None]}, ["a", 1, "1"], PAYLOAD)
    return tmp_path / "store"


def test_all_comes_back(path):
    with Store.open(path) as store:
        assert store.settings == {"k": [1, None]}
        assert store.version == (1, 0)
        assert (store.n_points, *store.sizes()[:2]) == (3, 0, 0)
        arrays = store.arrays
        ids = store.ids_of([2, 0, 1])
        payload = store.payload_of([0, 1, 2])
    assert arrays.keys() == ARRAYS.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, ARRAYS[name])
        assert array.dtype == ARRAYS[name].dtype.newbyteorder("<")
        assert not array.flags.writeable
    assert ids == ["1", "a", 1]
    assert payload == {
        "price": [1.0, 2.5, None],
        "Price": [1.0, None, 3.0],
        "count": [1, 2, 3],
        "sold": [True, None, False],
        'a "b" `c`; --': ["x", "", None],
        "nothing": [None, None, None],
    }
    assert [type(value) for value in payload["sold"]] == [bool, type(None), bool]
    assert [type(value) for value in payload["price"][:2]] == [float, float]


def test_a_change_is_logged_and_applied(path):
    change = {"rows": np.array([[1, 2]]), "nothing": np.empty(0)}
    with Store.open(path, write=True) as store:
        number = store.append(
            change,
            removed=[1],
            added_slots=[3, 4],
            ids=[1, "new"],
            payload={"count": [0.5, None], "nothing": ["now", None]},
        )
        assert store.append({}) == number + 1 == 2
    with Store.open(path) as store:
        assert store.version == (1, 2)
        assert store.n_pending == 2
        with store.reading():
            (first, arrays), (second, empty) = store.changes()
        assert (first, second, empty) == (1, 2, {})
        np.testing.assert_array_equal(arrays["rows"], change["rows"])
        assert arrays["nothing"].shape == (0,)
        with store.reading():
            assert list(store.changes(after=1)) == [(2, {})]
        assert store.slots_of([1, "new", "1", "a"]).tolist() == [3, 4, 2, 0]
        assert store.payload_of([0, 3, 4], ["count", "sold"]) == {
            "count": [1.0, 0.5, None],
            "sold": [True, None, None],
        }
        assert store.columns["count"] == "number"
        assert store.columns["nothing"] == "text"
        assert store.matching("nothing = 'now'").tolist() == [3]
        store.verify()


def test_payload_changes_in_place(path):
    with Store.open(path, write=True) as store, Store.open(path) as reader:
        before = store.payload_of([0, 1, 2])
        for slots, payload, message in [
            ([7], {"count": [1]}, "no points at the slots 7"),
            ([1, 1], {"count": [1, 1]}, "more than once"),
            ([1, 2], {"count": [1]}, "1 values for 2 points"),
            ([1], {"colour": [1]}, "new columns: 'colour'"),
            ([0, 1], {"count": [1, 2], "sold": ["x", "y"]}, "holds boolean values"),
        ]:
            with pytest.raises(InputError, match=message):
                store.change_payload(slots, payload)
            assert reader.payload_of([0, 1, 2]) == before
        store.change_payload([2, 0], {"count": [0.5, None], "sold": [True, False]})
        for one in (store, reader):
            assert one.version == (1, 0)
            assert one.n_pending == 0
            assert one.columns["count"] == "number"
            expected = {**before, "count": [None, 2.0, 0.5], "sold": [False, None, True]}
            assert one.payload_of([0, 1, 2]) == expected
            assert one.matching("count < 1").tolist() == [2]
            one.verify()
        with pytest.raises(InputError, match="write=True"):
            reader.change_payload([0], {"count": [1]})


def test_the_largest_number_among_ids(tmp_path):
    for number, (ids, largest) in enumerate(
        [
            ([], None),
            (["a", "5"], None),
            ([3, "9", -1], 3),
            ([-4, -2], -2),
            ([2**63 - 1, 0], 2**63 - 1),
        ]
    ):
        Store.create(tmp_path / str(number), {}, {}, ids)
        with Store.open(tmp_path / str(number)) as store:
            assert store.largest_number == largest


def test_a_merge_renumbers_and_clears_the_log(path):
    with Store.open(path, write=True) as store:
        store.append({}, removed=[0], added_slots=[5], ids=["last"])
        old = store.arrays["vectors"]
        with pytest.raises(InputError, match="kept names 2 slots, but must name the 3"):
            store.merge({}, {}, [1, 2])
        assert store.version == (1, 1)
        assert len(list((path / "segments").iterdir())) == len(ARRAYS)
        store.merge({"only": np.ones(3)}, {"new": True}, [1, 2, 5])
        np.testing.assert_array_equal(old, ARRAYS["vectors"])
    with Store.open(path) as store:
        assert store.version == (2, 1)
        assert (store.n_pending, store.settings) == (0, {"new": True})
        assert list(store.arrays) == ["only"]
        assert store.ids_of([0, 1, 2]) == [1, "1", "last"]
        assert store.slots_of(["last"]).tolist() == [2]
        assert store.payload_of([0])["count"] == [2]
    assert [file.name for file in (path / "segments").iterdir()] == ["only-2.npy"]


def test_many_points_are_found_either_way(tmp_path):
    ids = [f"p{i}" if i % 2 else i for i in np.random.default_rng(0).permutation(5000).tolist()]
    Store.create(tmp_path / "store", {}, {}, ids, {"half": [i / 2 for i in range(5000)]})
    with Store.open(tmp_path / "store") as store:
        for slots in ([17, 3], list(range(4999, -1, -1))):
            assert store.ids_of(np.array(slots)) == [ids[slot] for slot in slots]
            assert store.slots_of([ids[slot] for slot in slots]).tolist() == slots
            assert store.payload_of(slots) == {"half": [slot / 2 for slot in slots]}
        store.verify()
        assert store.ids_of([3, 3]) == [ids[3]] * 2
        assert store.slots_of([ids[3], ids[3]]).tolist() == [3, 3]
        assert store.ids_of([]) == []
        assert store.payload_of([]) == {"half": []}
        with pytest.raises(InputError, match=r"no points with the ids '3x', 5001"):
            store.slots_of(["3x", ids[0], 5001])
        with pytest.raises(InputError, match="no points at the slots 5000"):
            store.ids_of([0, 5000])


@examples(25)
@given(
    st.lists(
        st.integers(-(2**63), 2**63 - 1)
        | st.text(
            st.characters(exclude_characters="\0", exclude_categories=["Cs"]),
            min_size=1,
            max_size=20,
        ),
        unique=True,
        max_size=20,
    )
)
def test_ids_are_kept_as_they_are(tmp_path_factory, ids):
    path = tmp_path_factory.mktemp("ids") / "store"
    Store.create(path, {}, {}, ids)
    with Store.open(path) as store:
        slots = list(range(len(ids)))
        found = store.ids_of(slots)
        assert [(type(i), i) for i in found] == [(type(i), i) for i in ids]
        assert store.slots_of(ids).tolist() == slots


def test_numpy_ids_are_as_good(tmp_path):
    Store.create(tmp_path / "whole", {}, {}, np.array([3, 1], dtype=np.uint16))
    Store.create(tmp_path / "text", {}, {}, [np.str_("a"), np.int32(4)])
    with Store.open(tmp_path / "whole") as store:
        assert store.ids_of([0, 1]) == [3, 1]
    with Store.open(tmp_path / "text") as store:
        assert [type(i) for i in store.ids_of([0, 1])] == [str, int]


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([True], r"id 0 is True \(bool\)"),
        (["a", 1.5], r"id 1 is 1.5 \(float\)"),
        ([None], "id 0 is None"),
        ([b"a"], "id 0 is b'a'"),
        ([""], "has 0 characters"),
        (["x" * 1001, "a"], "has 1001 characters"),
        ([2**63], "up to 64 bits"),
        (["a\0"], "NUL"),
        (["\ud800"], "surrogate"),
        (["a", "b", "a", 7, 7], "more than once: 'a', 7;"),
        ("abc", "must be a list"),
        (5, "must be a list"),
        (np.array(5), "single value"),
    ],
)
def test_bad_ids_are_named(tmp_path, ids, message):
    with pytest.raises(InputError, match=message):
        Store.create(tmp_path / "store", {}, {}, ids)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        ([1], "must map names"),
        ({"": [1]}, "called ''"),
        ({"x" * 101: [1]}, "1 to 100"),
        ({"a\nb": [1]}, "printable"),
        ({3: [1]}, "called 3"),
        ({"id": [1]}, "rename it"),
        ({"a": [1, 2]}, "2 values for 1 points"),
        ({"a": "x"}, "must be a list"),
        ({"a": [b"x"]}, "of type bytes"),
        ({"a": [{}]}, "of type dict"),
        ({"a": np.array(["2020-01-01"], dtype="datetime64[D]")}, "ISO"),
        ({"a": [2**63]}, "more than 64 bits"),
        ({"a": ["\ud800"]}, "surrogate"),
        ({f"c{i}": [1] for i in range(501)}, "501 columns"),
    ],
)
def test_bad_payload_is_named(tmp_path, payload, message):
    with pytest.raises(InputError, match=message):
        Store.create(tmp_path / "store", {}, {}, ["a"], payload)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("values", [[1, "a"], [True, 2], [1.5, "a"], [True, None, "a"]])
def test_a_column_has_one_type(tmp_path, values):
    with pytest.raises(InputError, match="column 'c' holds values of type"):
        Store.create(tmp_path / "store", {}, {}, list(range(len(values))), {"c": values})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"removed": [7]}, "no points at the slots 7"),
        ({"removed": [1, 1]}, "more than once"),
        ({"removed": [-1]}, "0 or more"),
        ({"removed": [0.5]}, "whole numbers"),
        ({"added_slots": [3]}, "1 added_slots, but 0 ids"),
        ({"added_slots": [2], "ids": ["x"]}, "ascend from above 2"),
        ({"added_slots": [4, 3], "ids": ["x", "y"]}, "ascend"),
        ({"removed": [2], "added_slots": [2], "ids": ["x"]}, "ascend from above 2"),
        ({"added_slots": [3, 4], "ids": ["x", 1]}, "in use already: 1;"),
        ({"added_slots": [3], "ids": ["x"], "payload": {"colour": [1]}}, "new columns: 'colour'"),
        ({"added_slots": [3], "ids": ["x"], "payload": {"count": ["1"]}}, "holds integer values"),
        ({"arrays": {"Bad name": np.ones(1)}}, "small letters"),
        ({"arrays": {"a": np.array(["x"])}}, "must hold numbers"),
        ({"arrays": [1]}, "must map names"),
    ],
)
def test_a_bad_change_changes_nothing(path, change, message):
    with Store.open(path, write=True) as store:
        with pytest.raises(InputError, match=message):
            store.append(**{"arrays": {}, **change})
        assert store.version == (1, 0)
        assert store.ids_of([0, 1, 2]) == ["a", 1, "1"]
        with store.reading(), pytest.raises(InputError, match="inside of reading"):
            store.append({})
        assert store.append({}) == 1


def test_nothing_is_overwritten_unasked(path, tmp_path):
    (tmp_path / "file").write_text("text")
    (tmp_path / "folder").mkdir()
    for taken in (path, tmp_path / "file", tmp_path / "folder"):
        with pytest.raises(InputError, match="exists already"):
            Store.create(taken, {}, {}, [])
        with pytest.raises(InputError, match="exists already"):
            Store.check_place(taken)
    for foreign in (tmp_path / "file", tmp_path / "folder"):
        with pytest.raises(StorageError, match="index"):
            Store.create(foreign, {}, {}, [], replace=True)
        with pytest.raises(StorageError, match="index"):
            Store.check_place(foreign, replace=True)
    Store.check_place(path, replace=True)
    Store.check_place(tmp_path / "new", replace=True)
    with pytest.raises(InputError, match="does not exist"):
        Store.create(tmp_path / "a" / "b", {}, {}, [])
    with pytest.raises(InputError, match="JSON"):
        Store.create(tmp_path / "new", {}, {"x": {1, 2}}, [])
    assert {p.name for p in tmp_path.iterdir()} == {"file", "folder", "store"}


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder that none may fill")
def test_a_place_that_cannot_be_written_to_is_told_before_any_work():
    with pytest.raises(InputError, match="nothing can be written into '/proc/store'"):
        Store.check_place("/proc/store")


def test_readers_follow_a_replaced_store(path):
    with Store.open(path) as reader:
        Store.create(path, {"x": np.ones(1)}, {}, ["z"], {"other": [1]}, replace=True)
        assert reader.version == (2, 0)
        assert list(reader.arrays) == ["x"]
        assert reader.payload_of(reader.slots_of(["z"])) == {"other": [1]}
        with pytest.raises(InputError, match="no column 'price'; known are other"):
            reader.payload_of([0], ["price"])


def test_a_closed_store_says_so(path):
    store = Store.open(path)
    arrays = store.arrays
    store.close()
    np.testing.assert_array_equal(arrays["vectors"], ARRAYS["vectors"])
    with pytest.raises(StorageError, match="closed"):
        store.ids_of([0])


FULL_DISK = """
import resource, sys
import growing_store as growing
from rankfold.storage import Store
store = Store.open(sys.argv[1], write=True)
resource.setrlimit(resource.RLIMIT_FSIZE, (1_500_000, 1_500_000))
try:
    while True:
        growing.grow(store)
except Exception as error:
    print(type(error).__name__, store.version.sequence)
store.close()  # the log of SQLite is empty again, so that it is the arrays that do not fit
store = Store.open(sys.argv[1], write=True)
growing.BULK = 300_000
try:
    growing.merge(store)
except Exception as error:
    print(type(error).__name__, store.version.sequence)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such limits")
def test_a_full_disk_harms_nothing(tmp_path):
    path = tmp_path / "store"
    growing.create(path)
    tests = Path(growing.__file__).parent
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(path)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tests), *sys.path])},
    )
    (first, before), (second, after) = (line.split() for line in done.stdout.splitlines())
    assert (first, second) == ("StorageError", "OSError")
    with Store.open(path, write=True) as store:
        assert growing.check(store) == int(before) == int(after)
        assert int(before) > 1
        assert len(list((path / "segments").iterdir())) == len(store.arrays)


def test_threads_read_without_harm(path):
    failures = []

    def ask(store):
        try:
            for _ in range(30):
                with store.reading():
                    assert store.ids_of([0, 1, 2]) == ["a", 1, "1"]
        except BaseException as error:
            failures.append(error)

    with Store.open(path) as store:
        threads = [threading.Thread(target=ask, args=(store,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert failures == []


def test_threads_hold_on_to_states_of_their_own(path):
    """While one thread reads, another one reads and writes."""
    with Store.open(path, write=True) as store:
        before, (first,) = store.version, store.payload_of([0], ["price"])["price"]

        def change():
            store.change_payload([0], {"price": [4321]})
            number = store.append({}, removed=[1])
            return number, store.version, store.payload_of([0], ["price"])

        with store.reading(), ThreadPoolExecutor(1) as threads:
            n_points = store.n_points
            number, version, payload = threads.submit(change).result(60)
            assert (version.sequence, payload) == (number, {"price": [4321]})
            assert (store.version, store.n_points) == (before, n_points)
            assert store.payload_of([0], ["price"]) == {"price": [first]}
            assert first != 4321
        assert (store.version, store.n_points) == (version, n_points - 1)


def test_connections_are_used_again(path):
    with Store.open(path, write=True) as store:
        for _ in range(5):
            store.change_payload([0], {"price": [1]})
            with store.reading():
                assert store.n_points == len(store.ids_of([0, 1, 2]))
        assert len(store._connections._idle) == 1


def test_a_thread_may_finish_reading_after_the_store_was_closed(path):
    store = Store.open(path)
    with store.reading():
        with ThreadPoolExecutor(1) as threads:
            threads.submit(store.close).result(60)
        assert store.ids_of([0]) == ["a"]
    with pytest.raises(StorageError, match="closed"):
        store.ids_of([0])


READ_AS_NOBODY = """
import os, sys
from rankfold.storage import Store
os.setuid(65534)
store = Store.open(sys.argv[1])
print(store.version, store.ids_of([0, 1]), flush=True)
input()
print(store.version, store.ids_of([0, 1]))
"""


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become nobody"
)
def test_readers_need_no_right_to_write():
    folder = Path(tempfile.mkdtemp())
    try:
        folder.chmod(0o755)
        Store.create(folder / "store", ARRAYS, {}, ["a", "b"])
        reader = subprocess.Popen(
            [sys.executable, "-c", READ_AS_NOBODY, str(folder / "store")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        before = reader.stdout.readline()
        with Store.open(folder / "store", write=True) as store:
            store.append({}, removed=[0], added_slots=[2], ids=["a"])
            store.merge(ARRAYS, {}, [1, 2])
            after, _ = reader.communicate("go\n")
    finally:
        shutil.rmtree(folder)
    assert before == "Version(generation=1, sequence=0) ['a', 'b']\n"
    assert after == "Version(generation=2, sequence=1) ['b', 'a']\n"


def test_headers_are_parsed_in_the_thread_that_opens(path, monkeypatch):
    """NumPy parses them with `ast`, which has failed in threads of CPython 3.11."""
    threads, parse = [], np.lib.format.read_array_header_1_0

    def watched(file):
        threads.append(threading.current_thread())
        return parse(file)

    monkeypatch.setattr(np.lib.format, "read_array_header_1_0", watched)
    Store.open(path).close()
    assert threads == [threading.current_thread()] * len(ARRAYS)


def test_changes_are_read_one_at_a_time_within_a_state(path):
    with Store.open(path, write=True) as store:
        for number in range(3):
            store.append({"a": np.full(5, number), "b": np.ones(2, dtype=np.int16)})
        assert store.sizes()[1] == 3 * (5 * 8 + 2 * 2)
        with pytest.raises(InputError, match="inside of reading"):
            store.changes()
        with store.reading():
            changes, unread = store.changes(), store.changes()
            assert next(changes)[0] == 1
        for late in (changes, unread):
            with pytest.raises(InputError, match="had ended"):
                next(late)


def test_a_merge_gives_space_back(path):
    database = path / "index.sqlite"
    with Store.open(path, write=True) as store:
        before = store.payload_of([0, 1, 2])
        store.append({"bulk": np.ones(500_000)})
        store.merge(ARRAYS, {}, [0, 1, 2])
        assert store.sizes()[1] == 0
        assert store.payload_of([0, 1, 2]) == before
        store.verify()
    assert database.stat().st_size < 500_000

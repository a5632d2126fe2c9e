"""Whole numbers keep every digit, whatever arrives beside them."""

import pytest

from rankfold.errors import InputError
from rankfold.storage import Store

LARGE = 2**53 + 1


def make(path, values):
    Store.create(path, {}, {}, list(range(len(values))), {"n": values})
    return path


def held(store):
    slots = range(store.n_points)
    return store.columns["n"], store.payload_of(slots)["n"]


def add(store, value):
    last = store.n_points
    store.append({}, added_slots=[last], ids=[last], payload={"n": [value]})


def test_whole_floats_leave_whole_numbers_as_they_are(tmp_path):
    with Store.open(make(tmp_path / "s", [LARGE, 2]), write=True) as store:
        add(store, 7.0)
        store.change_payload([1], {"n": [-3.0]})
        kind, values = held(store)
        assert (kind, values) == ("integer", [LARGE, -3, 7])
        assert set(map(type, values)) == {int}
        assert store.matching(f"n = {LARGE}").tolist() == [0]
        store.verify()


@pytest.mark.parametrize("value", [0.5, float("inf"), 2.0**53])
@pytest.mark.parametrize("large", [LARGE, -LARGE])
def test_a_column_that_would_lose_digits_is_not_widened(tmp_path, value, large):
    with Store.open(make(tmp_path / "s", [large, 2]), write=True) as store:
        with pytest.raises(InputError, match=f"column 'n' would hold {large}"):
            add(store, value)
        with pytest.raises(InputError, match=f"column 'n' would hold {large}"):
            store.change_payload([1], {"n": [value]})
        assert held(store) == ("integer", [large, 2])
        store.verify()


def test_a_large_whole_number_is_not_rounded_into_other_numbers(tmp_path):
    with Store.open(make(tmp_path / "s", [0.5]), write=True) as store:
        with pytest.raises(InputError, match=f"column 'n' would hold {LARGE}"):
            add(store, LARGE)
        add(store, 2**53)
        assert held(store) == ("number", [0.5, 2.0**53])


def test_small_whole_numbers_are_still_widened(tmp_path):
    with Store.open(make(tmp_path / "s", [2**53, 2]), write=True) as store:
        add(store, 0.5)
        assert held(store) == ("number", [2.0**53, 2.0, 0.5])
        store.verify()


def test_mixed_lists(tmp_path):
    with Store.open(make(tmp_path / "whole", [LARGE, 1.0, None])) as store:
        assert held(store) == ("integer", [LARGE, 1, None])
    with pytest.raises(InputError, match=f"column 'n' would hold {LARGE}"):
        make(tmp_path / "refused", [LARGE, 0.5])
    with pytest.raises(InputError, match="more than 64 bits"):
        make(tmp_path / "refused", [2**63, 0.5])

"""Conditions against a plain evaluation of the same tree, and against nonsense."""

import re

import pytest
from condition_cases import IDS, PAYLOAD, TREES, expected
from hypothesis import given
from hypothesis import strategies as st

from rankfold.errors import InputError
from rankfold.parallel import Stop, StoppedError
from rankfold.storage import Store
from rankfold.storage.columns import Column
from rankfold.storage.conditions import translate


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("conditions") / "store"
    Store.create(path, {}, {}, IDS, PAYLOAD)
    with Store.open(path) as store:
        yield store


@given(TREES)
def test_conditions_mean_what_they_say(store, tree):
    assert store.matching(tree.text).tolist() == expected(tree)


def test_and_binds_closer_than_or_and_not_closest(store):
    both = store.matching("id = 1 or id = 2 and sold").tolist()
    assert both == [0]
    assert store.matching("not sold and id = 2").tolist() == [2]


WORDS = [*PAYLOAD, "and", "or", "not", "in", "is", "null", "like", "between", "(", ")", ",", "=",
         "<", "!=", "'", '"', "`", "1", "-2.5e3", "'x'", "true", "id", "slot", "c0", "--", ";", "?",
         "\0", "\ud800", "٣", "1e999", "union select", "0x10", "*"]  # fmt: skip


@given(st.text() | st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join))
def test_nonsense_gives_clear_errors_and_never_reaches_sql(store, text):
    columns = [Column(name, kind, i) for i, (name, kind) in enumerate(store.columns.items())]
    try:
        sql, values = translate(text, columns)
    except InputError:
        return
    words = set(re.findall(r"\w+|[^\w\s]", sql))
    assert words <= {*"()?,=<>'", "AND", "OR", "NOT", "IS", "NULL", "IN", "LIKE",
                     "typeof", "text", "integer", "id", *(c.key for c in columns)}  # fmt: skip
    assert sql.count("?") == len(values)
    store.matching(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected the name of a column"),
        ("price <", "expected a number"),
        ("price == 3", "compared by a single '='"),
        ("price < 'ten'", "a column of number values is compared with a text"),
        ("color = 3", "a column of text values is compared with a number"),
        ("sold = 1", "a column of boolean values is compared with a number"),
        ("sold > true", "compared by '=' and '!='"),
        ("id = true", "a column of id values is compared with a boolean"),
        ("price", "expected a comparison"),
        ("colour = 'red'", "there is no column 'colour'"),
        ("price = null", "'is null'"),
        ("price not < 3", "'in', 'between' or 'like'"),
        ("price like '1%'", "'like' is for texts"),
        ("color like 1", "a text in quotes"),
        ("(sold", "expected '\\)'"),
        ("sold)", "'and', 'or' or the end"),
        ("color = 'red", "has no end"),
        ("price < 1e999", "too large"),
        ("price; 1", "backticks"),
        ("color = '\ud800'", "half of a surrogate pair"),
        ("color = '\0'", "NUL"),
        ("(" * 12 + "sold" + ")" * 12, "more than 12"),
        ("not " * 12 + "sold", "more than 12"),
        (" or ".join(["sold"] * 201), "more than 200 tests"),
        (f"count in ({','.join('1' * 901)})", "more than 900 values"),
        ("x" * 10_001, "10001 characters"),
        (None, "must be text"),
    ],
)
def test_mistakes_are_pointed_at(store, text, message):
    with pytest.raises(InputError, match=message):
        store.matching(text)


def test_the_caret_stands_below_the_mistake(store):
    with pytest.raises(InputError) as caught:
        store.matching("sold and\tprice < and sold")
    lines = str(caught.value).splitlines()
    assert lines[1].index("and sold", 10) == lines[2].index("^")
    assert lines[3].startswith("The columns are id, price, count, color")


def test_the_largest_conditions_can_be_run(store):
    tests = " or ".join([f"count in ({', '.join(map(str, range(4)))})"] * 200)
    assert store.matching(tests).tolist() == [0, 1, 2, 6, 7, 8]
    deep = "sold or count between 9 and 10 and (" * 11 + "id not in (5, 6)" + ")" * 11
    assert store.matching(deep).tolist() == [0, 3, 6, 7]


def test_work_that_nobody_waits_for_is_stopped_in_the_middle_of_a_condition(tmp_path):
    Store.create(tmp_path / "store", {}, {}, range(5000), {"name": ["tea"] * 5000})
    stop = Stop()
    with Store.open(tmp_path / "store") as store:
        with stop.stoppable():
            assert len(store.matching("name like '%e%'")) == 5000
            stop.set()
            with pytest.raises(StoppedError):
                store.matching("name like '%e%'")
        assert len(store.matching("name like '%e%'")) == 5000

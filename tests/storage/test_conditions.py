"""Conditions against a plain evaluation of the same tree, and against nonsense."""

import re
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankfold.check import InputError
from rankfold.storage import Store
from rankfold.storage.columns import Column
from rankfold.storage.conditions import translate

IDS = [1, "1", 2, "two", -5, "it's", 'say "hi"', 10**18, "ä", "A"]
PAYLOAD = {
    "price": [1.5, 2.0, None, -3.25, 1e300, 0.0, 2.0, None, 7.0, 10.0],
    "count": [1, 2, 3, None, -(2**63), 2**63 - 1, 0, 2, 2, None],
    "color": ["red", "blue", None, "Red", "", "a%b", "it's", 'b"c', "ä", "blue`x"],
    "sold": [True, False, None, True, False, None, True, True, False, False],
    "Sold": ["yes", "no"] * 5,
    "my `odd` column; drop table points --": ["x", None] * 5,
    "empty": [None] * 10,
}
TEXTS = st.sampled_from([*PAYLOAD["color"][3:], "red", "two", "1"]) | st.text(
    st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=5
)
NUMBERS = (
    st.sampled_from([1, 2, 2**63 - 1, 2.0, 1.5, 10**18])
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
)
VALUES = {
    "price": NUMBERS,
    "count": NUMBERS,
    "color": TEXTS,
    "Sold": TEXTS,
    "my `odd` column; drop table points --": TEXTS,
    "id": TEXTS | NUMBERS,
}
SIGNS = {
    "=": lambda a, b: a == b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("conditions") / "store"
    Store.create(path, {}, {}, IDS, PAYLOAD)
    with Store.open(path) as store:
        yield store


@dataclass
class Tree:
    """A condition as text, and whether it holds for a point."""

    text: str
    holds: Any


def name_of(column):
    return column if column.isidentifier() else "`" + column.replace("`", "``") + "`"


def text_of(value):
    if isinstance(value, str):
        quote = '"' if "'" in value else "'"
        return quote + value.replace(quote, quote * 2) + quote
    return repr(value)


def as_read(value):
    """Return whole numbers beyond 64 bits as the floats that the condition makes of them."""
    return float(value) if isinstance(value, int) and not -(2**63) <= value < 2**63 else value


def same_kind(a, b):
    return a is not None and isinstance(a, str) == isinstance(b, str)


def like(pattern, text):
    parts = {"%": ".*", "_": "."}
    letters = (parts.get(c) or (f"[{c.lower()}{c.upper()}]" if c.isascii() and c.isalpha()
               else re.escape(c)) for c in pattern)  # fmt: skip
    return re.fullmatch("".join(letters), text, re.DOTALL) is not None


@st.composite
def single_tests(draw):
    form = draw(st.sampled_from(["compare", "in", "between", "like", "null", "bare", "boolean"]))
    if form == "null":
        column = draw(st.sampled_from([*PAYLOAD, "id"]))
        negated = draw(st.booleans())
        words = "is not null" if negated else "IS NULL"
        return Tree(f"{name_of(column)} {words}", lambda p: (p[column] is None) != negated)
    if form == "bare":
        return Tree("sold", lambda p: p["sold"] is True)
    if form == "boolean":
        value = draw(st.booleans())
        return Tree(f"sold = {str(value).lower()}", lambda p: p["sold"] is value)
    if form == "like":
        column = draw(st.sampled_from(["color", "id"]))
        pattern = draw(TEXTS | st.text("ab%_rR", max_size=4))
        test = Tree(f"like {text_of(pattern)}",
                    lambda p: isinstance(p[column], str) and like(pattern, p[column]))  # fmt: skip
    else:
        column = draw(st.sampled_from(list(VALUES)))
        given_values = draw(st.lists(VALUES[column], min_size=2, max_size=4))
        texts, values = [text_of(v) for v in given_values], [as_read(v) for v in given_values]
        test = comparison(draw, form, column, texts, values)
    if form == "compare":
        return Tree(f"{name_of(column)} {test.text}", test.holds)
    negated = draw(st.booleans())
    return Tree(
        f"{name_of(column)} {'not ' if negated else ''}{test.text}",
        lambda p: p[column] is not None and test.holds(p) != negated,
    )


def comparison(draw, form, column, texts, values):
    def compare(sign, value):
        return lambda p: same_kind(p[column], value) and SIGNS[sign](p[column], value)

    if form == "in":
        return Tree(f"in ({', '.join(texts)})", lambda p: any(compare("=", v)(p) for v in values))
    if form == "between":
        low, high = compare(">=", values[0]), compare("<=", values[1])
        return Tree(f"between {texts[0]} AND {texts[1]}", lambda p: low(p) and high(p))
    sign = draw(st.sampled_from([*SIGNS, "!="]))
    if sign == "!=":
        equal = compare("=", values[0])
        return Tree(f"!= {texts[0]}", lambda p: p[column] is not None and not equal(p))
    return Tree(f"{sign}{texts[0]}", compare(sign, values[0]))


def joined(children):
    return st.one_of(
        st.builds(lambda a: Tree(f"not ({a.text})", lambda p: not a.holds(p)), children),
        st.builds(
            lambda a, b: Tree(f"({a.text}) and ({b.text})", lambda p: a.holds(p) and b.holds(p)),
            children, children,
        ),
        st.builds(
            lambda a, b: Tree(f"({a.text} or\n ({b.text}))", lambda p: a.holds(p) or b.holds(p)),
            children, children,
        ),
    )  # fmt: skip


@given(st.recursive(single_tests(), joined, max_leaves=8))
def test_conditions_mean_what_they_say(store, tree):
    points = [
        {"id": i} | {name: column[row] for name, column in PAYLOAD.items()}
        for row, i in enumerate(IDS)
    ]
    expected = [row for row, point in enumerate(points) if tree.holds(point)]
    assert store.matching(tree.text).tolist() == expected


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

"""Conditions of every form, each with a plain function that says for which points it holds."""

import re
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

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


TREES = st.recursive(single_tests(), joined, max_leaves=8)


def expected(tree):
    """Return the places of the points for which a condition holds."""
    columns = {"id": IDS, **PAYLOAD}
    points = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return [place for place, point in enumerate(points) if tree.holds(point)]

"""Conditions on payload and ids, parsed and turned into SQL that holds nothing a user wrote."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import isinf

from rankfold.errors import InputError
from rankfold.storage.columns import UNKNOWN, WHOLE, Column, check_texts

LONGEST_CONDITION = 10_000
KEYWORDS = frozenset(["and", "or", "not", "in", "between", "like", "is", "null", "true", "false"])
SHOWN = 60
"""Characters shown on either side of a mistake."""

DEEPEST = 12
"""Levels of parentheses and ``not``; beyond 15, SQLite runs out of its stack of 100 symbols."""

MOST_VALUES = 900
MOST_TESTS = 200
COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
FITTING = {"integer": "number", "number": "number", "text": "text", "boolean": "boolean"}

Scalar = bool | int | float | str

PATTERN = re.compile(
    r"""
    (?P<number> [+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?!\w) )
    | (?P<word> [^\W\d]\w* )
    | (?P<text> "(?:[^"]|"")*" | '(?:[^']|'')*' )
    | (?P<name> `(?:[^`]|``)+` )
    | (?P<symbol> <= | >= | != | [=<>(),] )
    """,
    re.VERBOSE,
)


@dataclass(frozen=True)
class Token:
    """A piece of a condition: a keyword, name, number, text, symbol or the end."""

    kind: str
    text: str
    position: int

    def __str__(self) -> str:
        return "the end" if self.kind == "end" else self.text


def tokens(condition: str) -> list[Token]:
    """Cut a condition into its pieces.

    Examples
    --------
    >>> [(token.kind, token.text) for token in tokens("a >= 1.5 and `my b` = 'it''s'")][:5]
    [('name', 'a'), ('symbol', '>='), ('number', '1.5'), ('keyword', 'and'), ('name', 'my b')]
    """
    if not isinstance(condition, str):
        raise InputError(f"a condition is {condition!r}, but must be text such as 'price < 10'.")
    if len(condition) > LONGEST_CONDITION:
        raise InputError(
            f"a condition has {len(condition)} characters, but may have {LONGEST_CONDITION}."
        )
    check_texts([condition], "a condition")
    found = []
    place = 0
    while rest := condition[place:].lstrip():
        place = len(condition) - len(rest)
        match = PATTERN.match(condition, place)
        if match is None:
            raise mistake(condition, place, f"{rest[0]!r} cannot be read{_hint(rest[0])}")
        found.append(_token(match))
        place = match.end()
    return [*found, Token("end", "", len(condition))]


def mistake(condition: str, position: int, message: str) -> InputError:
    """Return an error that shows where in a condition it lies."""
    start = max(0, position - SHOWN)
    line = "".join(c if c.isprintable() else " " for c in condition[start : position + SHOWN])
    return InputError(f"in a condition, {message}:\n  {line}\n  {' ' * (position - start)}^")


def _token(match: re.Match[str]) -> Token:
    kind, text = str(match.lastgroup), match.group()
    if kind == "word":
        is_keyword = text.lower() in KEYWORDS
        kind, text = ("keyword", text.lower()) if is_keyword else ("name", text)
    elif kind in ("text", "name"):
        text = text[1:-1].replace(text[0] * 2, text[0])
    return Token(kind, text, match.start())


def _hint(character: str) -> str:
    if character in "\"'`":
        return "; the quotation mark has no end"
    return "; put names of columns with unusual characters into `backticks`"


def translate(condition: str, columns: Sequence[Column]) -> tuple[str, list[object]]:
    """Return the SQL of a condition, and the values to bind to its marks.

    Examples
    --------
    >>> translate("price < 10 and not sold", [Column("price", "number", 0),
    ...                                       Column("sold", "boolean", 1)])
    ('(c0 IS NOT NULL AND c0 < ?) AND NOT (c1 IS NOT NULL AND c1 = ?)', [10, True])
    """
    return _Parser(condition, columns).parse()


class _Parser:
    """Reads a condition from left to right; each method reads one thing and returns its SQL.

    The SQL is true or false, never null. ``kind`` is that of a column, or "id"; ``key`` is what the
    column is called in the database.
    """

    def __init__(self, condition: str, columns: Sequence[Column]) -> None:
        self._condition = condition
        self._columns = {column.name: column for column in columns}
        self._tokens = iter(tokens(condition))
        self._token = next(self._tokens)
        self._bound: list[object] = []
        self._n_values = 0
        self._n_tests = 0
        self._depth = 0

    def parse(self) -> tuple[str, list[object]]:
        sql = self._any_of()
        if self._token.kind != "end":
            raise self._unexpected("'and', 'or' or the end")
        return sql, self._bound

    def _any_of(self) -> str:
        parts = [self._all_of()]
        while self._accept("or"):
            parts.append(self._all_of())
        return " OR ".join(parts)

    def _all_of(self) -> str:
        parts = [self._single()]
        while self._accept("and"):
            parts.append(self._single())
        return " AND ".join(parts)  # which binds closer than OR in SQL, too

    def _single(self) -> str:
        self._depth += 1
        if self._depth > DEEPEST:
            raise self._mistake(f"there are more than {DEEPEST} levels of parentheses and 'not'")
        if self._accept("not"):
            sql = f"NOT {self._single()}"
        elif self._accept("("):
            sql = f"({self._any_of()})"
            self._expect(")")
        else:
            sql = self._test()
        self._depth -= 1
        return sql

    def _test(self) -> str:
        self._n_tests += 1
        if self._n_tests > MOST_TESTS:
            raise self._mistake(f"there are more than {MOST_TESTS} tests")
        start = self._token
        kind, key = self._column()
        if self._accept("is"):
            negated = self._accept("not")
            self._expect("null")
            return f"({key} IS NOT NULL)" if negated else f"(NOT {key} IS NOT NULL)"
        negated = self._accept("not")
        if self._accept("in"):
            test = self._one_of(kind, key)
        elif self._accept("between"):
            low = self._compared(kind, key, ">=", self._value(kind, ">="))
            self._expect("and")
            high = self._compared(kind, key, "<=", self._value(kind, "<="))
            test = f"({low} AND {high})"
        elif self._accept("like"):
            test = self._like(kind, key)
        elif negated:
            raise self._unexpected("'in', 'between' or 'like'")
        elif self._token.kind == "symbol" and self._token.text in COMPARISONS:
            sign = self._advance().text
            negated = sign == "!="
            sign = "=" if negated else sign
            test = self._compared(kind, key, sign, self._value(kind, sign))
        elif kind == "boolean":
            test = self._compared(kind, key, "=", True)
        else:
            raise self._unexpected(
                f"a comparison (=, !=, <, <=, >, >=, in, between, like, is) after {start.text!r}"
            )
        return f"({key} IS NOT NULL AND NOT {test})" if negated else test

    def _one_of(self, kind: str, key: str) -> str:
        self._expect("(")
        values = [self._value(kind, "=")]
        while self._accept(","):
            values.append(self._value(kind, "="))
        self._expect(")")
        self._bound.extend(values)
        return f"({key} IS NOT NULL AND {key} IN ({', '.join('?' * len(values))}))"

    def _like(self, kind: str, key: str) -> str:
        if kind not in ("text", "id", UNKNOWN):
            raise self._mistake(f"'like' is for texts, but this column holds {kind} values")
        if self._token.kind != "text":
            raise self._unexpected("a text in quotes")
        self._bound.append(self._advance().text)
        return f"(typeof({key}) = 'text' AND {key} LIKE ?)"  # case-insensitive for ASCII

    def _compared(self, kind: str, key: str, sign: str, value: Scalar) -> str:
        self._bound.append(value)
        test = f"({key} IS NOT NULL AND {key} {sign} ?)"
        if kind == "id" and sign != "=":
            stored = "text" if isinstance(value, str) else "integer"
            test = f"(typeof({key}) = '{stored}' AND {test})"
        return test

    def _column(self) -> tuple[str, str]:
        """Return kind and key of a column."""
        if self._token.kind != "name":
            raise self._unexpected("the name of a column, 'not' or '('")
        column = self._columns.get(self._token.text)
        if column is None and self._token.text != "id":
            raise self._mistake(f"there is no column {self._token.text!r}")
        self._advance()
        return (column.kind, column.key) if column else ("id", "id")

    def _value(self, kind: str, sign: str) -> Scalar:
        token = self._token
        self._n_values += 1
        if self._n_values > MOST_VALUES:
            raise self._mistake(f"there are more than {MOST_VALUES} values")
        if token.text == "null" and token.kind == "keyword":
            raise self._mistake("a missing value is found by 'is null' or 'is not null'")
        value, given = self._literal(token)
        fits = given in ("number", "text") if kind == "id" else FITTING.get(kind, given) == given
        if not fits:
            raise self._mistake(f"a column of {kind} values is compared with a {given}")
        if given == "boolean" and sign != "=":
            raise self._mistake("true and false are compared by '=' and '!='")
        self._advance()
        return value

    def _literal(self, token: Token) -> tuple[Scalar, str]:
        if token.kind == "text":
            return token.text, "text"
        if token.kind == "keyword" and token.text in ("true", "false"):
            return token.text == "true", "boolean"
        if token.kind == "symbol" and token.text == "=":
            raise self._mistake("values are compared by a single '='")
        if token.kind != "number":
            raise self._unexpected("a number, a text in quotes, true or false")
        whole = token.text.lstrip("+-").isdigit() and len(token.text) <= 20
        if whole and int(token.text) in WHOLE:
            return int(token.text), "number"
        number = float(token.text)
        if isinf(number):
            raise self._mistake("the number is too large")
        return number, "number"

    def _accept(self, text: str) -> bool:
        found = self._token.kind in ("keyword", "symbol") and self._token.text == text
        if found:
            self._advance()
        return found

    def _expect(self, text: str) -> None:
        if not self._accept(text):
            raise self._unexpected(f"{text!r}")

    def _advance(self) -> Token:
        token, self._token = self._token, next(self._tokens)
        return token

    def _unexpected(self, expected: str) -> InputError:
        return self._mistake(f"expected {expected}, but found {self._token}")

    def _mistake(self, message: str) -> InputError:
        error = mistake(self._condition, self._token.position, message)
        names = ["id", *self._columns]
        more = f" and {len(names) - 20} more" if len(names) > 20 else ""
        return InputError(f"{error}\nThe columns are {', '.join(names[:20])}{more}.")

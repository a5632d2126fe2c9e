"""Conditions on payload and ids, turned into SQL that holds nothing a user wrote.

A condition is made of tests, joined by ``and``, ``or``, ``not`` and parentheses::

    price < 10 and (color = "red" or color in ("blue", "green")) and not sold

=====================================  ====================================================
test                                   holds for points
=====================================  ====================================================
``price < 10``                         also ``=``, ``!=``, ``<=``, ``>``, ``>=``
``color in ("blue", "green")``         with one of these values; also ``not in``
``price between 5 and 10``             from 5 to 10, both included; also ``not between``
``name like "A%"``                     ``%`` is any text, ``_`` any character, the letters
                                       a to z are as good as A to Z; also ``not like``
``note is null``                       without a value; also ``is not null``
``sold``                               where a column of true and false is true
=====================================  ====================================================

Values are numbers, texts in single or double quotes (doubled inside: ``'it''s'``), ``true`` and
``false``. Columns with unusual names stand in backticks: ```my column` > 3``. ``id`` is a column
too; ids that are numbers are compared with numbers, and texts with texts.

Every test is either true or false. A test of a missing value is false, that is also
``color != "red"``; ``not`` of it is true, so ``not color = "red"`` holds for points without color.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isinf

from rankfold.check import InputError
from rankfold.storage.columns import UNKNOWN, Column
from rankfold.storage.dialect import SQLITE, Dialect, Literal
from rankfold.storage.ids import WHOLE
from rankfold.storage.tokens import Token, mistake, tokens

DEEPEST = 12
"""Levels of parentheses and ``not``; beyond 15, SQLite runs out of its stack of 100 symbols."""

MOST_VALUES = 900
MOST_TESTS = 200
COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
FITTING = {"integer": "number", "number": "number", "text": "text", "boolean": "boolean"}


def translate(
    condition: str, columns: Sequence[Column], dialect: Dialect = SQLITE
) -> tuple[str, list[object]]:
    """Return the SQL of a condition, and the values to bind to its marks.

    Examples
    --------
    >>> translate("price < 10 and not sold", [Column("price", "number", 0),
    ...                                       Column("sold", "boolean", 1)])
    ('(c0 IS NOT NULL AND c0 < ?) AND NOT (c1 IS NOT NULL AND c1 = ?)', [10, True])
    """
    return _Parser(condition, columns, dialect).parse()


class _Parser:
    """Reads a condition from left to right; each method reads one thing and returns its SQL."""

    def __init__(self, condition: str, columns: Sequence[Column], dialect: Dialect) -> None:
        self._condition = condition
        self._dialect = dialect
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
            present = self._dialect.present(kind, key)
            return f"({present})" if negated else f"(NOT {present})"
        negated = self._accept("not")
        if self._accept("in"):
            test = self._one_of(kind, key)
        elif self._accept("between"):
            low = self._compared(kind, key, ">=")
            self._expect("and")
            test = f"({low} AND {self._compared(kind, key, '<=')})"
        elif self._accept("like"):
            test = self._like(kind, key)
        elif negated:
            raise self._unexpected("'in', 'between' or 'like'")
        elif self._token.kind == "symbol" and self._token.text in COMPARISONS:
            sign = self._advance().text
            negated = sign == "!="
            test = self._compared(kind, key, "=" if negated else sign)
        elif kind == "boolean":
            test = self._bind(self._dialect.compared(kind, key, "=", True))
        else:
            raise self._unexpected(
                f"a comparison (=, !=, <, <=, >, >=, in, between, like, is) after {start.text!r}"
            )
        return f"({self._dialect.present(kind, key)} AND NOT {test})" if negated else test

    def _one_of(self, kind: str, key: str) -> str:
        self._expect("(")
        values = [self._value(kind, "=")]
        while self._accept(","):
            values.append(self._value(kind, "="))
        self._expect(")")
        return self._bind(self._dialect.one_of(kind, key, values))

    def _like(self, kind: str, key: str) -> str:
        if kind not in ("text", "id", UNKNOWN):
            raise self._mistake(f"'like' is for texts, but this column holds {kind} values")
        if self._token.kind != "text":
            raise self._unexpected("a text in quotes")
        return self._bind(self._dialect.like(kind, key, self._advance().text))

    def _compared(self, kind: str, key: str, sign: str) -> str:
        return self._bind(self._dialect.compared(kind, key, sign, self._value(kind, sign)))

    def _bind(self, test: tuple[str, Sequence[object]]) -> str:
        sql, values = test
        self._bound.extend(values)
        return sql

    def _column(self) -> tuple[str, str]:
        """Return kind and key of a column."""
        if self._token.kind != "name":
            raise self._unexpected("the name of a column, 'not' or '('")
        column = self._columns.get(self._token.text)
        if column is None and self._token.text != "id":
            raise self._mistake(f"there is no column {self._token.text!r}")
        self._advance()
        return (column.kind, column.key) if column else ("id", "id")

    def _value(self, kind: str, sign: str) -> Literal:
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

    def _literal(self, token: Token) -> tuple[Literal, str]:
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

"""Conditions cut into words, and messages that point into them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from rankfold.check import InputError
from rankfold.storage.ids import check_texts

LONGEST = 10_000
KEYWORDS = frozenset(["and", "or", "not", "in", "between", "like", "is", "null", "true", "false"])
SHOWN = 60
"""Characters shown on either side of a mistake."""

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
    if len(condition) > LONGEST:
        raise InputError(f"a condition has {len(condition)} characters, but may have {LONGEST}.")
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

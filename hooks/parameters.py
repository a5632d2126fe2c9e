"""Gives every parameter in the reference its own default and type.

The parser of docstrings takes the first of ``{"left", "both"}`` for the default, and the default
and type of the first of several parameters that share a line for those of all.
"""

from __future__ import annotations

from typing import Any

from griffe import Class, Docstring, DocstringSectionKind, Extension, Function


class OwnParameters(Extension):
    """Corrects parsed docstrings by the signatures that they speak of."""

    def on_package(self, *, pkg: Any, **_: Any) -> None:
        """Correct everything in a package, once it is read."""
        correct_members(pkg)


def correct_members(thing: Any) -> None:
    """Correct the functions and classes of a module or class."""
    for member in thing.members.values():
        if not member.is_alias:
            if isinstance(member, Function | Class) and member.docstring:
                correct(member.docstring, member)
            correct_members(member)


def correct(docstring: Docstring, owner: Function | Class) -> None:
    """Correct the parameters of one docstring; it is parsed here, and stays so."""
    signature = {parameter.name: parameter.default for parameter in owner.parameters}
    types = {parameter.name: parameter.annotation for parameter in owner.parameters}
    if isinstance(owner, Class) and not signature:  # of a dataclass or a model: its fields
        signature = {name: field.value for name, field in owner.attributes.items()}
        types = {name: field.annotation for name, field in owner.attributes.items()}
    docstring.parser_options = {"warn_unknown_params": bool(owner.parameters)}
    for section in docstring.parsed:
        if section.kind is not DocstringSectionKind.parameters:
            continue
        for described in section.value:
            name = described.name.lstrip("*")
            if name not in signature:
                continue
            described.value = signature[name]
            words = said(docstring, described.name)
            if not words:
                described.annotation = types[name]
            elif words.startswith("{") or "shape" in words:  # no expression of Python
                described.annotation = words


def said(docstring: Docstring, name: str) -> str:
    r"""Return what a docstring says of the type of a parameter; nothing where it does not.

    Examples
    --------
    >>> text = Docstring('Do.\n\nParameters\n----------\na, b\nc : {"x", "y"}, optional')
    >>> said(text, "b"), said(text, "c")
    ('', '{"x", "y"}')
    """
    for line in docstring.value.splitlines():
        names, _, words = line.partition(" : ")
        if name in names.split(", "):
            return words.removesuffix(", optional")
    return ""

"""A labelled corpus of short texts that every Python has: the documentation of its library."""

import inspect
import sys
import warnings
from collections import Counter
from importlib import import_module

FEWEST, SHORTEST = 20, 5
LEFT_OUT = {"antigravity", "idlelib", "lib2to3", "this", "turtledemo"}
"""Modules that do something when they are imported, or are no part of the library."""


def load():
    """Return what functions, classes and methods are for, and the modules that they are in.

    A text that documents things in two modules is left out.
    """
    homes = {}
    for name in sorted(sys.stdlib_module_names - LEFT_OUT):
        for text in texts_of(name):
            homes.setdefault(text, set()).add(name)
    told = {text: next(iter(names)) for text, names in homes.items() if len(names) == 1}
    sizes = Counter(told.values())
    return zip(*((text, at) for text, at in told.items() if sizes[at] >= FEWEST), strict=True)


def texts_of(name):
    """Yield the first paragraphs of what a public module defines itself."""
    if name.startswith("_"):
        return
    try:
        with warnings.catch_warnings(action="ignore"):
            module = import_module(name)
    except ImportError:  # of another system
        return
    for thing in public(module):
        members = public(thing) if inspect.isclass(thing) else []
        for documented in (thing, *members):
            paragraph = (inspect.getdoc(documented) or "").split("\n\n")[0]
            own = getattr(documented, "__module__", name) in (name, None)
            if own and len(paragraph.split()) >= SHORTEST:
                yield " ".join(paragraph.split())


def public(holder):
    """Return the functions, methods and classes of a module or class that have a public name."""
    named = (thing for name, thing in vars(holder).items() if not name.startswith("_"))
    return [thing for thing in named if inspect.isroutine(thing) or inspect.isclass(thing)]

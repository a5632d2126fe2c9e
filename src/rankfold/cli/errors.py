"""How commands end: errors and warnings in one line, Ctrl-C, and broken pipes."""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

INTERRUPTED = 130
"""Status of a command that was ended by Ctrl-C, as shells report it."""

STOPPED = "Stopped: nothing is half-written."
CHANGE_STOPPED = "Stopped: the change was made completely, or not at all; look with rankfold info."
LEARNING_STOPPED = (
    "Stopped: the graph was learned completely, or not at all; index learn goes on after the last "
    "finished round."
)

ELSEWHERE = ("ID", "[ID]...", "FILE")
"""Metavars of options whose values name points or files; what is wrong is there, if anything."""


class Commands(click.Group):
    """A group whose commands never end in a traceback that users could have mended."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command that was asked for."""
        with quiet_pipes(), one_line_warnings(), interruptible(), clear_errors():
            return super().invoke(ctx)


class Command(click.Command):
    """A command that speaks of its own options where the library speaks of parameters."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        with clear_errors(self):
            return super().invoke(ctx)


@contextmanager
def interruptible(message: str = "Stopped.") -> Iterator[None]:
    """End with the status of Ctrl-C, and a message that is true whenever it comes."""
    try:
        yield
    except KeyboardInterrupt:
        click.echo(message, err=True)
        raise SystemExit(INTERRUPTED) from None


@contextmanager
def clear_errors(command: click.Command | None = None) -> Iterator[None]:
    """Turn what users can mend into one line instead of a traceback."""
    try:
        yield
    except BrokenPipeError:
        raise
    except UnicodeEncodeError as error:
        sign = error.object[error.start]
        raise click.ClickException(
            f"the output is in {error.encoding}, which has no {sign!a}; set PYTHONIOENCODING=utf-8."
        ) from error
    except Exception as error:
        if not isinstance(error, _mendable()):
            raise
        if command is None:
            raise click.ClickException(str(error)) from error
        argument = getattr(error, "argument", None) or ""
        message = in_terms_of_options(str(error), command, argument)
        if given_parameters(command).isdisjoint(argument.split(".")):
            raise click.ClickException(message) from error
        raise click.UsageError(message) from error


def given_parameters(command: click.Command) -> set[str]:
    """Return the parameters of the library whose values stand in a command line itself."""
    settings = click.get_current_context().params.get("settings") or ()
    names = {one.name or "" for one in command.params if one.metavar not in ELSEWHERE}
    return names | {f"n_{name}" for name in names} | {name for name, _ in settings}


def _mendable() -> tuple[type[Exception], ...]:
    """Return what users can mend; nothing is imported, since whoever raises it has done that."""
    errors = sys.modules.get("rankfold.errors")
    return (OSError,) if errors is None else (OSError, errors.RankfoldError)


def in_terms_of_options(message: str, command: click.Command, argument: str = "") -> str:
    """Name options as they are typed, in the place of parameters of the library.

    The ``argument`` that a message is about is its first word. Elsewhere only names of several
    words and ``flag=True`` are looked for, and not within quotes: the others may be words of the
    sentence, or of a file.
    """
    for option in command.params:
        if isinstance(option, click.Option) and argument in (option.name, f"n_{option.name}"):
            message = re.sub(rf"^{argument}(?= )", option.opts[0], message)
        several_words = "_" in (option.name or "")
        if isinstance(option, click.Option) and (several_words or option.is_flag):
            true = "" if not option.is_flag else "(=True)?" if several_words else "=True"
            name = rf"(?<![\w'\"./-]){option.name}{true}(?!\w|['\"./-]\w)"
            message = re.sub(name, option.opts[0], message)
    return message


@contextmanager
def one_line_warnings() -> Iterator[None]:
    """Write warnings as one line on standard error, each once."""
    seen: set[str] = set()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        line = " ".join(str(message).split())
        if line not in seen:
            seen.add(line)
            click.echo(f"Warning: {line}", err=True)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


@contextmanager
def quiet_pipes() -> Iterator[None]:
    """End quietly when the reader of a pipe, such as ``head``, has seen enough."""
    try:
        yield
    except BrokenPipeError:
        # Python flushes standard output once more when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(0) from None

"""Every command that the documentation shows, with the output that it shows."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import psycopg
import pytest
from click.testing import CliRunner
from databases.servers import postgresql

from rankfold import datasets
from rankfold.cli import main

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["README.md", "docs/command_line.md"]
OVER_A_DATABASE = "docs/databases.md"


class Example(NamedTuple):
    command: str
    shown: str


def examples(page):
    """Return commands (``$``, then ``>`` for their further lines) and what follows each."""
    found = []
    for block in re.findall(r"^```console\n(.*?)^```$", page, re.DOTALL | re.MULTILINE):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            lines = part.splitlines()
            n_lines = next((i for i, line in enumerate(lines[1:], 1) if line[:1] != ">"), None)
            n_lines = len(lines) if n_lines is None else n_lines
            command = [lines[0], *(line.removeprefix(">")[1:] for line in lines[1:n_lines])]
            found.append(
                Example("\n".join(command), "".join(f"{line}\n" for line in lines[n_lines:]))
            )
    return found


def run(command, place):
    """Return what a terminal would show."""
    if command.startswith("rankfold ") and not re.search(r"[|>]|\n", command):
        command = os.path.expandvars(command)
        return CliRunner().invoke(main, shlex.split(command)[1:]).output  # needs no new process
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-c", command],  # noqa: S607
        cwd=place,
        env={**os.environ, "PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
    ).stdout


def check_page(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    shown = examples((ROOT / page).read_text(encoding="utf-8"))
    assert len(shown) >= 3
    for command, expected in shown:
        assert run(command, tmp_path) == expected, command


@pytest.mark.one_in(2)
@pytest.mark.parametrize("page", PAGES)
def test_commands_print_what_is_shown(page, tmp_path, monkeypatch):
    check_page(page, tmp_path, monkeypatch)


def test_commands_over_a_database_print_what_is_shown(tmp_path, monkeypatch):
    server = postgresql()
    server.run("CREATE DATABASE shop")
    try:
        server.run("CREATE EXTENSION vector", "shop")
        server.run("CREATE TABLE docs (id int PRIMARY KEY, digit int, v vector(64))", "shop")
        digits = datasets.load("digits")
        with psycopg.connect(server.address("shop")) as connection:
            rows = zip(digits.labels.tolist(), digits.X.tolist(), strict=True)
            given = [(i, digit, json.dumps(v)) for i, (digit, v) in enumerate(rows)]
            connection.cursor().executemany("INSERT INTO docs VALUES (%s, %s, %s)", given)
        monkeypatch.setenv("SHOP", server.address("shop"))
        check_page(OVER_A_DATABASE, tmp_path, monkeypatch)
    finally:
        server.run("DROP DATABASE shop WITH (FORCE)")

"""What only real processes show: pipes, Ctrl-C, completion, a quick start."""

import os
import pty
import re
import signal
import subprocess
import sys
import termios
from pathlib import Path

import numpy as np
import pytest

from rankfold import Index

COMMAND_LINE = Path(__file__).resolve().parents[2] / "docs" / "command_line.md"


def test_results_go_through_pipes(shell, index):
    result = shell(
        f"rankfold query {index} --id m5 --top 3 --format csv | tail -n +2 | cut -d, -f2 "
        f"| rankfold index remove {index} --ids -"
    )
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == "moons: removed 3 points, now 397\n"


@pytest.mark.one_in(2)
@pytest.mark.parametrize("form", ["table", "json"])
def test_a_reader_that_leaves_early_is_no_error(shell, index, form):
    # The pipe holds less than the answer, so that the writer must notice.
    line = f"rankfold query {index} --id m5 --top 400 --explain --format {form}"
    result = shell(f"{line} | (read -r first; echo read)")
    assert (result.returncode, result.stdout, result.stderr) == (0, "read\n", "")


def test_a_closed_pipe_is_quiet(script, index, tmp_path):
    reading, writing = os.pipe()
    os.close(reading)
    words = [script, "query", index, "--id", "m5"]
    with os.fdopen(writing, "w") as pipe:
        result = subprocess.run(words, cwd=tmp_path, stdout=pipe, stderr=subprocess.PIPE, text=True)
    assert (result.returncode, result.stderr) == (0, "")


def test_interrupted_build_leaves_nothing(script, tmp_path):
    generator = np.random.default_rng(0)
    np.save(tmp_path / "many.npy", generator.standard_normal((60_000, 64)).astype("float32"))
    words = [script, "index", "build", "many.npy", "-o", "many"]
    printed, rest = interrupt(words, tmp_path, "neighbours")  # the bar: the search has begun
    assert printed == ""
    assert "Stopped: nothing is half-written." in rest
    assert "Traceback" not in rest
    assert [path.name for path in tmp_path.iterdir()] == ["many.npy"]


@pytest.mark.slow
def test_interrupted_drawing_leaves_the_map_as_it_was(script, tmp_path):
    X = np.random.default_rng(0).standard_normal((15_000, 8))
    with Index.build(X, path=tmp_path / "many", n_neighbors=20) as index:
        before = index.places()[1]
    words = [script, "index", "map", "many", "--layout", "graph"]
    printed, rest = interrupt(words, tmp_path, "map: ")
    assert printed == ""
    assert "Stopped: the change was made completely, or not at all" in rest
    assert "Traceback" not in rest
    with Index.open(tmp_path / "many", write=True) as index:
        assert index.info()["generation"] == 1
        np.testing.assert_array_equal(index.places()[1], before)


def interrupt(words, folder, sign):
    """Press Ctrl-C when a sign of work is shown; return what is printed, and shown after that."""
    terminal, stderr = pty.openpty()
    termios.tcsetwinsize(stderr, (24, 80))  # bars take the room there is
    process = subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, stderr=stderr, text=True)
    os.close(stderr)
    shown = ""
    while sign not in shown:
        shown += os.read(terminal, 1000).decode()
    process.send_signal(signal.SIGINT)
    rest = rest_of(terminal)
    printed, _ = process.communicate(timeout=120)
    assert process.returncode == 130
    return printed, rest


def rest_of(terminal):
    text = b""
    while True:
        try:
            more = os.read(terminal, 1000)
        except OSError:  # so Linux says that the other side is closed
            break
        if not more:
            break
        text += more
    os.close(terminal)
    return text.decode()


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("rankfold ind", {"index"}),
        ("rankfold index me", {"merge"}),
        ("rankfold query moons --f", {"--format", "--fusion"}),
        ("rankfold query moons --format j", {"json"}),
    ],
)
def test_completion(shell, line, expected):
    words = line.split()
    result = shell(
        "rankfold",
        _RANKFOLD_COMPLETE="bash_complete",
        COMP_WORDS=line,
        COMP_CWORD=str(len(words) - 1),
    )
    assert {row.partition(",")[2] for row in result.stdout.split()} == expected


def test_documented_completion_is_valid_bash(shell):
    result = shell('eval "$(_RANKFOLD_COMPLETE=bash_source rankfold)" && complete -p rankfold')
    assert result.returncode == 0
    assert result.stdout.startswith("complete ")


def test_help_needs_nothing_heavy(shell):
    result = shell("PYTHONPROFILEIMPORTTIME=1 rankfold query --help")
    assert "--explain-id" in result.stdout
    loaded = {line.rpartition("|")[2].strip() for line in result.stderr.splitlines()}
    assert "rankfold.cli.query" in loaded
    assert not {"numpy", "scipy", "sklearn", "rich"} & loaded


def test_a_query_loads_nothing_that_it_does_not_need(built):
    code = (
        "import sys; from rankfold.cli import main\n"
        f"main(['query', {str(built)!r}, '--id', 'm5'], standalone_mode=False)\n"
        "print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stderr.split())
    assert {"numpy", "sklearn.base"} <= loaded
    assert not {"numba", "faiss", "pandas.core", "scipy.stats._stats_py", "matplotlib"} & loaded
    assert done.stdout.startswith("rank")


def test_a_long_search_is_asked_about_on_a_terminal(script, index, tmp_path):
    code = (
        "from rankfold.cli import main, query\n"
        "query_module = __import__('sys').modules['rankfold.cli.query']\n"
        "query_module.UNTOLD_SECONDS = 0\n"
        "main(['query', 'moons', '--id', 'm5', '--top', '1', '--set', 'n_neighbors=100'{}])\n"
    )
    for answer, more, status, asked in [
        ("n\n", "", 1, True),
        ("y\n", "", 0, True),
        ("", ", '--yes'", 0, False),
    ]:
        ours, theirs = pty.openpty()
        os.write(ours, answer.encode())
        words = [sys.executable, "-c", code.format(more)]
        ended = subprocess.run(
            words, cwd=tmp_path, stdin=theirs, stdout=subprocess.PIPE, stderr=theirs, text=True
        )
        os.close(theirs)
        shown = os.read(ours, 10_000).decode()
        os.close(ours)
        assert (ended.returncode, "Go on?" in shown) == (status, asked)
        assert ("rank" in ended.stdout) == (status == 0)


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["query", "moons", "--id", "m5"], 0),
        (["--help"], 0),
        (["query", "moons", "--id", "nobody"], 1),
        (["query", "nowhere", "--id", "m5"], 1),
        (["index", "build", "none.npy", "-o", "new"], 1),
        (["index", "check", "nowhere"], 1),
        (["query", "moons"], 2),
        (["query", "moons", "--id", "m5", "--columns", "note", "--format", "json"], 2),
        (["query", "moons", "--id", "m5", "--set", "colour=1"], 2),
        (["query", "moons", "--id", "m5", "--set", "smoothness=high"], 2),
        (["query", "moons", "--id", "m5", "--set", "gamma=none"], 2),
        (["query", "moons", "--id", "m5", "--id", "m5"], 2),
        (["query", "moons", "--id", "m5", "--where", "moon <"], 2),
        (["query", "moons", "--id", "m5", "--where", "colour = 3"], 2),
        (["query", "moons", "--id", "m5", "--words", " "], 2),
        (["query", "moons", "--id", "m5", "--group-by", "colour"], 2),
        (["query", "moons", "--id", "m5", "--group-by", "moon", "--diversity", "0.5"], 2),
        (["query", "moons", "--id", "m5", "--per-group", "2"], 2),
        (["query", "moons", "--id", "m5", "--columns", "colour"], 2),
        (["query", "moons", "--id", "m5", "--explain-id", "m5"], 2),
        (["query", "moons", "--id", "m5", "--explain-id", "nobody"], 1),
        (["query", "moons", "--id", "m5", "--table", "docs"], 2),
        (["query", "oracle://here", "--table", "docs", "--id", "m5"], 2),
        (["query", "lancedb:///./none", "--table", "docs", "--id", "m5"], 1),
        (["info", "moons", "--table", "docs"], 2),
        (["serve", "oracle://here", "--table", "docs", "--port", "0"], 2),
        (["serve", "moons", "--allow-host", "example.org:80", "--port", "0"], 2),
        (["serve", "moons", "--cors", "example.org", "--port", "0"], 2),
        (["attach", "moons", "--table", "docs"], 2),
        (["attach", "lancedb:///./none", "--table", ""], 2),
        (["attach", "lancedb:///./none", "--table", "docs", "--components", "0"], 2),
        (["attach", "lancedb:///./none", "--table", "docs", "--neighbors", "0"], 2),
        (["detach", "oracle://here", "--table", "docs"], 2),
        (["find", "moons", " "], 2),
        (["find", "moons", "a", "--column", "colour"], 2),
        (["find", "moons", "a", "--where", "moon <"], 2),
        (["find", "lancedb:///./none", "a"], 2),
        (["index", "build", "moons.npy", "-o", "new", "--neighbors", "0"], 2),
        (["index", "build", "moons.npy", "-o", "new", "--colour"], 2),
        (["index", "build", "moons.npy", "-o", "new", "--size", "9x9"], 2),
        (["index", "build", "moons.npy", "-o", "new", "--id-column", "key"], 2),
        (["index", "build", "moons.npy", "-o", "new", "--embedder", "magic"], 2),
        (["index", "build", "moons.npy", "-o", "lancedb:///./none"], 2),
        (["index", "build", "moons.npy", "-o", "moons"], 1),
        (["index", "learn", "moons", "--smoothness", "-1"], 2),
        (["embed", "moons", "-o", "shape.txt"], 2),
        (["embed", "moons", "-o", "no/shape.npy"], 1),
        (["embed", "moons", "-o", "shape.npy", "--normalization", "2"], 2),
        (["evaluate", "cats"], 2),
        (["evaluate", "moons.npy", "--label", "moon", "--folder", "."], 2),
        (["evaluate", "rings", "--methods", "magic"], 2),
        (["evaluate", "rings", "--metrics", "magic"], 2),
        (["evaluate", "rings", "--metrics", "precision"], 2),
        (["evaluate", "rings", "--metrics", ""], 2),
        (["evaluate", "rings", "--base", "lhrr"], 2),
        (["evaluate", "rings", "--metric", "cosine"], 2),
        (["reproduce", "--only", "cats"], 2),
        (["reproduce", "--jobs", "0"], 2),
        (["demo", "--query", "9999"], 2),
        (["cluster", "rank", "moons", "-o", "x.txt", "--vectors", "moons.npy"], 2),
        (["cluster", "rank", "moons", "-o", "no/x.npz", "--vectors", "moons.npy"], 1),
        (["query", "moons", "--id", "m5", "--top", "many"], 2),
        (["query", "moons", "--id", "m5", "--top", "0"], 2),
        (["find", "moons", "a", "--top", "0"], 2),
        (["index", "remove", "moons"], 2),
        (["nothing"], 2),
    ],
)
def test_status_is_that_of_the_table(call, index, vectors, words, status):
    result = call(*words)
    assert result.exit_code == status
    assert bool(result.stderr) == (status != 0)


def test_help_and_documentation_have_the_table(call):
    for page in (call("--help").stdout, COMMAND_LINE.read_text(encoding="utf-8")):
        for known in ("0", "1", "2", "130"):
            assert re.search(rf"^( +|\| ){known} +(\| )?\w", page, re.MULTILINE)

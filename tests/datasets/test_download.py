"""Downloads from a server of this machine: what comes, what fails, what stays behind."""

import os
import socket
import subprocess
import sys
import time

import pytest
from click.testing import CliRunner

from rankfold import datasets
from rankfold.cli import main
from rankfold.datasets import files
from rankfold.datasets.files import FILES, locate
from rankfold.errors import MissingExtraError


def left_in(cache):
    return sorted(path.name for path in cache.iterdir()) if cache.is_dir() else []


def test_a_file_is_downloaded_once(source, cache, offer, content, capfd):
    offer(source.url)
    first, second = datasets.load("yale"), datasets.load("yale")
    assert len(source.requests) == 1
    assert (first.X == second.X).all()
    assert (cache / "yale_diff.mat").read_bytes() == content
    assert left_in(cache) == ["yale_diff.mat"]
    assert capfd.readouterr() == ("", "")


def test_a_damaged_file_in_the_cache_is_replaced(source, cache, offer, content):
    offer(source.url)
    cache.mkdir(parents=True)
    (cache / "yale_diff.mat").write_bytes(content[:-100])
    assert locate("yale_diff.mat").read_bytes() == content
    assert left_in(cache) == ["yale_diff.mat"]


@pytest.mark.parametrize("script", [[500], ["cut"], [503, "cut"]])
def test_what_passes_is_tried_again(source, cache, offer, content, script):
    offer(source.url)
    source.script = list(script)
    assert locate("yale_diff.mat").read_bytes() == content
    assert len(source.requests) == len(script) + 1
    assert left_in(cache) == ["yale_diff.mat"]


@pytest.mark.parametrize(
    ("turn", "n_requests", "reason"),
    [
        (404, 1, "answered with status 404 (Not Found)"),
        (403, 1, "answered with status 403 (Forbidden)"),
        (500, 3, "answered with status 500 (Internal Server Error)"),
        ("cut", 3, "broke off in the middle"),
        ("wrong", 1, "sent other bytes than expected (their sha256 differs)"),
    ],
)
def test_failures_say_what_to_do_and_leave_nothing(
    source, cache, offer, tmp_path, monkeypatch, turn, n_requests, reason
):
    offer(source.url)
    source.script = [turn] * 9
    monkeypatch.setenv("RANKFOLD_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError) as caught:
        datasets.load("yale")
    assert str(caught.value) == (
        f"yale_diff.mat was not found: it is not in {str(tmp_path)!r}, the folder of "
        f"RANKFOLD_DATA; it is not whole in the cache {str(cache)!r}, and its download failed: "
        f"{source.url} {reason}. Put yale_diff.mat (it holds the arrays Diff (165 x 165) and "
        "labels (165 labels)) into that folder, or pass its folder as folder=..., "
        "--folder on the command line."
    )
    assert len(source.requests) == n_requests
    assert left_in(cache) == []


@pytest.fixture
def nobody():
    """Return an address at which nothing listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}/YALE.mat"


def test_without_a_server_the_command_fails_in_one_line(nobody, cache, offer):
    offer(nobody)
    result = CliRunner().invoke(main, ["evaluate", "yale"])
    assert result.exit_code == 1
    assert result.output.startswith("Error: yale_diff.mat was not found: RANKFOLD_DATA names no")
    assert f"{nobody} could not be reached. Put yale_diff.mat" in result.output
    assert result.output.count("\n") == 1
    assert left_in(cache) == []


def test_the_next_address_is_tried(source, nobody, cache, offer, content):
    offer(nobody, source.url, source.url + "?third")
    source.script = ["wrong"]
    assert locate("yale_diff.mat").read_bytes() == content
    assert source.requests == ["/pinned/YALE.mat", "/pinned/YALE.mat?third"]


def test_every_address_that_failed_is_named(source, nobody, cache, offer):
    offer(nobody, source.url)
    source.script = [404]
    with pytest.raises(FileNotFoundError) as caught:
        locate("yale_diff.mat")
    assert f"{nobody} could not be reached; {source.url} answered with" in str(caught.value)


def test_a_cache_that_cannot_be_made_is_named(source, cache, offer):
    offer(source.url)
    cache.parent.parent.mkdir()
    cache.parent.write_text("a file where the folder should be")
    with pytest.raises(FileNotFoundError, match=r"the cache cannot be used \(.*rankfold"):
        locate("yale_diff.mat")
    assert source.requests == []


def test_leftovers_of_killed_downloads_go_when_old(source, cache, offer):
    offer(source.url)
    cache.mkdir(parents=True)
    for name, age in ((".old.part", 2 * files.ABANDONED), (".new.part", 0.0)):
        (cache / name).write_bytes(b"part")
        os.utime(cache / name, (time.time() - age,) * 2)
    locate("yale_diff.mat")
    assert left_in(cache) == [".new.part", "yale_diff.mat"]


def test_an_interruption_leaves_nothing(source, cache, offer, monkeypatch):
    offer(source.url)

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(files.DownloadBar, "update", stop)
    with pytest.raises(KeyboardInterrupt):
        locate("yale_diff.mat")
    assert len(source.requests) == 1
    assert left_in(cache) == []


PROCESS = """
import sys
from pathlib import Path
from rankfold.datasets.files import download
url, sha256, cache = sys.argv[1:]
print(download("yale_diff.mat", [url], sha256, Path(cache)).stat().st_size)
"""


def in_a_process(source, cache):
    words = [source.url, FILES["yale_diff.mat"].sha256, str(cache)]
    return subprocess.Popen(
        [sys.executable, "-c", PROCESS, *words], stdout=subprocess.PIPE, text=True
    )


@pytest.mark.slow
def test_two_processes_do_not_harm_each_other(source, cache, offer, content):
    offer(source.url)
    source.script = ["meet", "meet"]
    pair = [in_a_process(source, cache) for _ in range(2)]
    assert [process.communicate()[0] for process in pair] == [f"{len(content)}\n"] * 2
    assert len(source.requests) == 2
    assert (cache / "yale_diff.mat").read_bytes() == content
    assert left_in(cache) == ["yale_diff.mat"]


def test_a_killed_process_leaves_no_part_under_the_name(source, cache, offer, content):
    offer(source.url)
    source.script = ["meet"]
    with in_a_process(source, cache) as process:
        deadline = time.monotonic() + 60
        while not source.requests and time.monotonic() < deadline:
            time.sleep(0.01)
        process.kill()
    source.meeting.abort()
    assert [name.endswith(".part") for name in left_in(cache)] == [True]
    assert locate("yale_diff.mat").read_bytes() == content
    assert len(source.requests) == 2


def test_missing_pooch_names_the_extra(cache, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(MissingExtraError, match="the extra 'data' brings it: pip install"):
        datasets.load("yale")


def test_the_bar_is_drawn_on_a_terminal(source, cache, offer, content, monkeypatch, capfd):
    offer(source.url)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    locate("yale_diff.mat")
    out, err = capfd.readouterr()
    assert out == ""
    assert "downloading yale_diff.mat" in err
    assert f"{len(content) / 1000:.1f}/{len(content) / 1000:.1f} kB" in err

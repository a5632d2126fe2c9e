"""``rankfold reproduce`` on the command line."""

import _thread
import json
import re
from importlib.resources import files
from threading import Timer

import pytest
from click.testing import CliRunner

from rankfold.cli import main
from rankfold.paper import extras
from rankfold.paper.tables import read_tables

KEYS = [
    "dataset",
    "method",
    "metric",
    "cutoff",
    "printed",
    "ours",
    "difference",
    "status",
    "settings",
]


def call(*words):
    return CliRunner().invoke(main, ["reproduce", "--jobs", "1", *map(str, words)])


@pytest.fixture(scope="module")
def quick():
    """Little work beyond the printed tables."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(extras.alternation_work, "__defaults__", (3, 3))
        patch.setattr(extras, "GRID", {"n_neighbors": [5], "smoothness": [10.0, 30.0]})
        yield


@pytest.fixture(scope="module")
def yale(quick, folder, tmp_path_factory):
    """A run on the first table alone, where one printed figure has been changed."""
    text = files("rankfold.paper").joinpath("tables.toml").read_text(encoding="utf-8")
    start = text.index('name = "Table 2"')
    one = text[: text.rindex("[[tables]]\n", 0, start)]
    printed = "precision = { printed = 72.00"
    assert printed in one
    place = tmp_path_factory.mktemp("reproduce")
    tables = place / "tables.toml"
    tables.write_text(one.replace(printed, "precision = { printed = 71.00"))
    words = ["--only", "yale", "--folder", folder, "--tables", tables, "--out", place / "out"]
    return call(*words, "--format", "json"), place / "out"


def test_moved_figure_is_an_error_that_names_it(yale):
    result, _ = yale
    assert result.exit_code == 1
    assert "figures that have moved: 1\n" in result.stderr
    assert 'Table 1, RAN, precision@10: recorded "exact", now "differs"' in result.stderr
    assert "(printed 71.00, ours 72.000)" in result.stderr


def test_json_is_all_there_is_on_standard_output(yale):
    result, out = yale
    records = json.loads(result.stdout)
    assert records == json.loads((out / "results.json").read_text())
    assert all(list(record) == KEYS for record in records)
    assert len(records) == 12
    assert {record["dataset"] for record in records} == {"yale"}
    for record in records:
        assert record["difference"] == pytest.approx(record["ours"] - record["printed"])
    (euclidean, _, *_) = records
    assert euclidean["settings"] == {"class": "Distance"}
    assert euclidean["ours"] == pytest.approx(66.606, abs=1e-3)


def test_report_stands_alone_and_names_every_row(yale):
    _, out = yale
    page = (out / "report.html").read_text(encoding="utf-8")
    text = (out / "report.md").read_text(encoding="utf-8")
    assert not re.search(r"<(script|link|iframe)\b|@import|@font-face", page)
    sources = re.findall(r'(?:src|href)="([^"]*)"', page)
    assert sources
    assert all(source.startswith(("data:image/png;base64,", "#")) for source in sources)
    assert "http" not in re.sub(r"base64,[^\"]*", "", page)
    for row in read_tables()[0].rows:
        for metric, figure in row.figures.items():
            printed = 71.00 if (row.method, metric) == ("RAN", "precision") else figure.printed
            cells = [row.method if metric == "precision" else "", f"{metric[0].upper()}@10"]
            assert f"| {cells[0]} | {cells[1]} | {printed:.2f} |" in text
        assert f"<td>{row.method}</td>" in page
    assert "USPS" not in text


def test_pictures_named_in_the_report_are_there(yale):
    _, out = yale
    names = re.findall(r"!\[.*\]\((.*)\)", (out / "report.md").read_text(encoding="utf-8"))
    assert names == ["alternations.png"]
    written = {path.name for path in out.iterdir()}
    report = {"report.html", "report.md", "results.json"}
    assert written == report | {"alternations.png", "alternations.svg"}
    assert (out / "alternations.png").read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in (out / "alternations.svg").read_bytes()


def test_patterns_need_no_files(tmp_path):
    result = call("--only", "moons,rings", "--out", tmp_path / "new" / "out")
    assert result.exit_code == 0
    assert "Report:" in result.stdout
    names = {path.name for path in (tmp_path / "new" / "out").iterdir()}
    assert {"moons.png", "rings.png", "report.html"} <= names
    assert json.loads((tmp_path / "new" / "out" / "results.json").read_text()) == []


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["--only", "cats"], 2, "only names 'cats', but must be some of yale, orl, usps"),
        (["--only", "yale", "--folder", "nowhere"], 1, "yale_diff.mat is not in 'nowhere'"),
        (["--only", "moons", "--jobs", "0"], 2, "0 is not in the range"),
        (["--format", "pdf"], 2, "'pdf' is not one of"),
        (["--tables", "nowhere.toml"], 2, "does not exist"),
    ],
)
def test_bad_words(tmp_path, words, status, message):
    result = call("--out", tmp_path / "out", *words)
    assert result.exit_code == status
    assert result.stdout == ""
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_written_is_refused_before_anything_runs(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    # Not even root can write into the second.
    for out in (tmp_path / "file" / "out", "/proc/out"):
        result = call("--only", "cats", "--out", out)
        assert result.exit_code == 1
        assert f"nothing can be written into {str(out)!r}" in result.stderr


def test_interrupt_leaves_nothing_half_written(folder, tmp_path):
    timer = Timer(2.0, _thread.interrupt_main)
    timer.start()
    result = call("--only", "usps,orl", "--folder", folder, "--out", tmp_path / "out")
    timer.join()
    assert result.exit_code == 130
    assert result.stderr.startswith("Stopped: every file is complete, or as it was.")
    assert not (tmp_path / "out").exists()


def test_failure_while_writing_leaves_every_file_whole(tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / "moons.png").write_text("old")
    (out / "report.html").mkdir()
    result = call("--only", "moons", "--out", out)
    assert result.exit_code == 1
    assert "Traceback" not in result.output
    assert not [path for path in out.iterdir() if path.name.endswith(".partial")]
    assert (out / "moons.png").read_bytes().startswith(b"\x89PNG")
    assert (out / "report.html").is_dir()

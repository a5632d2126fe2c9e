"""``rankfold evaluate`` on the command line."""

import csv
import json
from io import StringIO

import pytest
from click.testing import CliRunner

from rankfold import RANKERS, Euclidean, datasets
from rankfold.cli import main
from rankfold.cli.evaluate import _rankers
from rankfold.evaluation import evaluate
from rankfold.evaluation.measures import DEFAULTS

QUICK = ["--methods", "ran,euclidean", "--queries", "20", "--metrics", "r_precision,ndcg@5"]


def call(*words):
    return CliRunner().invoke(main, ["evaluate", *words])


def test_metrics_are_those_of_the_library():
    (option,) = (option for option in main.commands["evaluate"].params if option.name == "metrics")
    assert option.default.split(",") == list(DEFAULTS)


def test_json_rows():
    result = call("moons", *QUICK, "--format", "json")
    assert result.exit_code == 0
    assert result.stderr == ""
    rows = json.loads(result.stdout)
    assert [(row["method"], row["metric"]) for row in rows] == [
        ("ran", "r_precision"),
        ("euclidean", "r_precision"),
        ("ran", "ndcg@5"),
        ("euclidean", "ndcg@5"),
    ]
    assert {tuple(row) for row in rows} == {
        ("dataset", "method", "metric", "mean", "low", "high", "harm")
    }
    found = evaluate({"e": Euclidean()}, datasets.load("moons"), "r_precision", queries=20)
    assert rows[1]["mean"] == found.mean("e", "r_precision")


@pytest.mark.parametrize(
    ("form", "start"),
    [
        ("table", "moons, "),
        ("markdown", "| dataset | metric | method |"),
        ("latex", "% harm"),
        ("csv", "dataset,method,metric,n_queries,mean,low,high,harm,p_value"),
    ],
)
def test_formats(form, start):
    result = call("moons", *QUICK, "--format", form)
    assert result.exit_code == 0
    assert result.stdout.startswith(start)
    assert "euclidean" in result.stdout


def test_all_methods():
    result = call("moons", "--queries", "5", "--format", "csv", "--metrics", "precision@5")
    assert result.exit_code == 0
    rows = csv.DictReader(StringIO(result.stdout))
    assert [row["method"] for row in rows] == list(RANKERS)


def test_all_methods_are_those_that_can_use_the_data():
    without = [name for name in RANKERS if name != "query_expansion"]
    assert list(_rankers("all", "precomputed")) == without
    assert list(_rankers("all", "cosine")) == list(RANKERS)


def test_options_reach_the_evaluation():
    options = ["--base", "euclidean", "--include-query", "--seed", "3", "--jobs", "1"]
    result = call("moons", *QUICK, *options, "--format", "csv")
    rows = list(csv.DictReader(StringIO(result.stdout)))
    assert [row["p_value"] == "" for row in rows] == [False, True, False, True]
    assert {row["n_queries"] for row in rows} == {"20"}


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["cats"], 1, "name is 'cats', but must be one of"),
        (["moons", "--methods", "ran,runn"], 1, "method 'runn' is not known; choose from all, eu"),
        (["moons", "--methods", ""], 1, "method '' is not known"),
        (["moons", "--metrics", "map"], 1, "metric 'map' is not known"),
        (["moons", "--methods", "ran", "--base", "lcdp"], 1, "base is 'lcdp'"),
        (["moons", "--queries", "0"], 1, "queries is 0"),
        (["moons", "--queries", "many"], 2, "not a valid integer"),
        (["moons", "--format", "pdf"], 2, "'pdf' is not one of"),
        (["moons", "--jobs", "0"], 1, "n_jobs is 0"),
        (["moons", "--seed", "-1"], 1, "seed is -1"),
        (["yale", "--folder", "nowhere"], 1, "yale_diff.mat is not in 'nowhere'"),
        ([], 2, "Missing argument 'DATASET'"),
    ],
)
def test_bad_words(words, status, message):
    result = call(*words)
    assert result.exit_code == status
    assert result.stdout == ""
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_interrupt(monkeypatch):
    def stop(self, queries, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(RANKERS["ran"], "rank_many", stop)
    result = call("moons", "--methods", "euclidean,ran", "--queries", "20", "--format", "csv")
    assert result.exit_code == 130
    assert [row["method"] for row in csv.DictReader(StringIO(result.stdout))] == ["euclidean"] * 3
    assert result.stderr.startswith("Stopped early")

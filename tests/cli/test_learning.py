"""``rankfold index learn``."""

import json

import numpy as np
import pytest
from cli.test_processes import interrupt

from rankfold import Index, datasets
from rankfold.datasets.synthetic import rings, sheets


@pytest.fixture
def kept(call, tmp_path):
    """An index that learns a graph."""
    Index.build(rings().X, path=tmp_path / "kept").close()
    return "kept"


def test_a_graph_is_learned_used_and_forgotten(call, kept):
    def scores(*words):
        result = call("query", kept, "--id", 3, "--format", "json", *words)
        return [row["score"] for row in json.loads(result.stdout)["results"]]

    plain = scores()
    result = call("index", "learn", kept)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == (
        "kept: learned a graph of 5 neighbours in 2 rounds; queries reach 0.83 times as many "
        "points as on the graph it began from\n"
    )
    assert scores() == scores("--set", "adapt=collective") != plain
    assert scores("--set", "adapt=query") == plain
    shown = call("info", kept).stdout
    assert "learned          n_neighbors 5, rounds 2, reach 0.83" in shown
    result = call("index", "learn", kept, "--forget")
    assert (result.exit_code, result.stdout) == (0, "kept: the learned graph is forgotten\n")
    assert "learned          none\n" in call("info", kept).stdout
    assert scores() == plain
    refused = call("query", kept, "--id", 3, "--set", "adapt=collective")
    assert refused.exit_code == 2
    assert "has not learned a graph for n_neighbors=10" in refused.stderr


def test_the_smoothness_of_later_queries_counts(call, kept, tmp_path):
    call("index", "learn", kept, "--smoothness", 3)
    with Index.open(tmp_path / kept, write=True) as index:
        found = index.info()["learned"]["reach"]
        assert found == index.learn(smoothness=3.0).reach != index.learn().reach
    result = call("index", "learn", kept, "--smoothness", -1)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "smoothness is -1" in result.stderr


def test_why_nothing_was_kept(call, tmp_path):
    Index.build(datasets.load("digits").X[:400], path=tmp_path / "digits").close()
    Index.build(np.eye(4), path=tmp_path / "few").close()
    assert call("index", "learn", "digits").stdout == (
        "digits: kept the plain graph: with 5 neighbours queries would reach 0.70 times as many "
        "points; with 10 neighbours queries would reach 0.86 times as many points, "
        "0.43 times those of a plain graph with 10\n"
    )
    assert call("index", "learn", "few").stdout == (
        "few: kept the plain graph: there are too few points to choose neighbours from\n"
    )


@pytest.mark.slow
def test_interrupted_learning_leaves_the_index_as_it_was(script, tmp_path):
    with Index.build(sheets(12_000).X, path=tmp_path / "many") as index:
        facts = index.info()
    printed, rest = interrupt([script, "index", "learn", "many"], tmp_path, "round 1 of")
    assert printed == ""
    assert "Stopped: the graph was learned completely, or not at all" in rest
    assert "Traceback" not in rest
    with Index.open(tmp_path / "many", write=True) as index:
        assert index.info() == facts

"""PyTerrier: tables of results and of judgements, and run files."""

import pandas as pd
import pyterrier as pt
import pytest

from rankfold import RAN, Distance, InputError, datasets
from rankfold.evaluation import evaluate_runs, make_qrels, make_run, read_run, write_run
from rankfold.integrations.pyterrier import (
    frame_to_qrels,
    frame_to_run,
    qrels_to_frame,
    run_to_frame,
)

QUERIES = list(range(0, 400, 40))


@pytest.fixture(scope="module")
def moons():
    return datasets.load("moons")


def run_of(ranker, moons):
    return make_run(QUERIES, ranker.fit(moons.X).rank_many(QUERIES, top=50))


def test_pyterrier_measures_the_same(moons):
    runs = {"plain": run_of(Distance(), moons), "ran": run_of(RAN(10), moons)}
    qrels = make_qrels(moons, QUERIES)
    ours = evaluate_runs(runs, qrels, ["ndcg@10", "precision@50"], plain="plain")
    for name, run in runs.items():
        theirs = pt.Evaluate(
            run_to_frame(run), qrels_to_frame(qrels), ["ndcg_cut_10", "P_50"], perquery=False
        )
        assert theirs["ndcg_cut_10"] == pytest.approx(ours.values[name]["ndcg@10"].mean())
        assert theirs["P_50"] == pytest.approx(ours.values[name]["precision@50"].mean())


def test_tables_and_files_hold_the_same(moons, tmp_path):
    run = run_of(RAN(10), moons)
    write_run(tmp_path / "ours.run", run)
    theirs = pt.io.read_results(str(tmp_path / "ours.run"))
    assert frame_to_run(theirs) == frame_to_run(run_to_frame(run)) == run
    pt.io.write_results(run_to_frame(run), str(tmp_path / "theirs.run"))
    assert read_run(tmp_path / "theirs.run") == run
    qrels = make_qrels(moons, QUERIES)
    assert frame_to_qrels(qrels_to_frame(qrels)) == qrels


def test_tables_that_are_none_are_refused():
    with pytest.raises(InputError, match="columns a, but must have qid, docno and score"):
        frame_to_run(pd.DataFrame({"a": [1]}))
    twice = pd.DataFrame({"qid": [0, 0], "docno": [1, 1], "label": [1, 1]})
    with pytest.raises(InputError, match="names '1' twice under query '0'"):
        frame_to_qrels(twice)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "high", None])
def test_scores_that_are_no_numbers_are_refused(value):
    with pytest.raises(InputError, match=r"score of '1' under query '0' .* a finite number"):
        frame_to_run(pd.DataFrame({"qid": [0], "docno": [1], "score": [value]}))


@pytest.mark.parametrize("value", [1.5, float("nan"), "1"])
def test_labels_that_are_no_whole_numbers_are_refused(value):
    with pytest.raises(InputError, match=r"label of '1' under query '0' .* a whole number"):
        frame_to_qrels(pd.DataFrame({"qid": [0], "docno": [1], "label": [value]}))

"""From which result on a method is better: precision by depth, and a sentence about it."""

import numpy as np
import pytest

from rankfold import Dataset, Distance
from rankfold.evaluation import DepthGain, evaluate, evaluate_runs
from rankfold.evaluation.results import DEPTHS, depth_measures, verdict


class Mixed(Distance):
    """Plain distance with a wrong first result, and then all right ones."""

    def rank_many(self, queries, *, top=None, include_query=False):
        from dataclasses import replace

        found = []
        for query, ranking in zip(queries, super().rank_many(queries), strict=True):
            right = ranking.indices % 3 == query % 3
            order = np.r_[np.flatnonzero(~right)[:1], np.flatnonzero(right)]
            order = np.r_[order, np.setdiff1d(np.arange(len(right)), order)]
            points = ranking.indices[order][:top]
            solution = replace(ranking.solution, points=points, scores=-np.arange(len(points)))
            found.append(replace(ranking, solution=solution))
        return found


def noise(n_points=150):
    X = np.random.default_rng(0).normal(size=(n_points, 2))
    labels = np.arange(n_points) % 3
    return Dataset("noise", X + 0.5 * labels[:, None], labels)


@pytest.fixture(scope="module")
def found():
    return evaluate({"plain": Distance(), "mixed": Mixed()}, noise(), "precision@3")


def test_gains_are_paired_differences(found):
    gains = found.depths()
    assert [gain.method for gain in gains] == ["mixed"] * len(DEPTHS)  # plain is like plain
    assert [gain.depth for gain in gains] == list(DEPTHS)
    for gain in gains:
        name = f"precision@{gain.depth}"
        difference = found.values["mixed"][name] - found.plain[name]
        assert gain.mean - gain.plain == pytest.approx(difference.mean())
        assert gain.low <= difference.mean() <= gain.high
    assert [gain.sign for gain in gains[:1]] == [-1]
    assert [gain.sign for gain in gains[2:]] == [1] * (len(DEPTHS) - 2)


def test_the_report_says_where_shape_begins_to_win(found):
    (sentence,) = found.verdicts()
    assert sentence.startswith("mixed is better than plain distance from the first ")
    assert "; worse at 1" in sentence
    for text in (found.to_text(), found.to_markdown(), found.to_latex()):
        assert " ".join(sentence.split()) in " ".join(text.split())
    assert "| precision at   |     1 |     2 |     5 |    10 |    20 |    50 |   100 |" in (
        found.to_text()
    )
    assert "\n| precision at | 1 | 2 | 5 | 10 | 20 | 50 | 100 |\n|---|---:|" in found.to_markdown()
    assert [row.metric for row in found.table()] == ["precision@3"] * 2


def test_few_queries_say_nothing_and_few_points_have_no_depth():
    few = evaluate({"mixed": Mixed()}, noise(), queries=9)
    assert few.verdicts() == ()
    small = evaluate({"mixed": Mixed()}, noise(30))
    assert max(gain.depth for gain in small.depths()) == 20
    assert [measure.name for measure in depth_measures(1)] == ["precision@1"]


def test_runs_have_depths_too():
    qrels = {str(q): {"a": 1} for q in range(12)}
    good = {query: {"a": 2.0, "b": 1.0} for query in qrels}
    bad = {query: {"a": 1.0, "b": 2.0} for query in qrels}
    found = evaluate_runs({"bad": bad, "good": good}, qrels, "ndcg@5", plain="bad")
    assert found.verdicts() == ("good is better than plain distance at 1.",)


def signed(*signs):
    pairs = zip(DEPTHS, signs, strict=True)
    return verdict([DepthGain("RAN", depth, 0.5, 0.5, s / 9, s / 9) for depth, s in pairs])


@pytest.mark.parametrize(
    ("signs", "sentence"),
    [
        ((1,) * 7, "RAN is better than plain distance at every depth."),
        ((-1, 0, 1, 1, 1, 1, 1), "RAN is better than plain distance from the first 5 results on; "
         "worse at 1."),
        ((0,) * 7, "RAN is neither better nor worse than plain distance at any depth."),
        ((-1, -1, 0, 0, 0, 0, 0), "RAN is worse than plain distance at 1 and 2, and better "
         "nowhere."),
        ((0, 0, 1, 0, 0, -1, -1), "RAN is better than plain distance at 5; worse from the first "
         "50 results on."),
        ((0, 0, 0, 0, 0, 0, 1), "RAN is better than plain distance at 100."),
        ((0, 1, 1, 1, 0, 0, 0), "RAN is better than plain distance at 2, 5 and 10."),
    ],
)  # fmt: skip
def test_sentences(signs, sentence):
    assert signed(*signs) == sentence

"""What the paper does not show, on little data."""

import numpy as np
import pytest

from rankfold import RAN, datasets, evaluate
from rankfold.paper import extras, figures, report
from rankfold.paper.extras import Course, follow
from rankfold.paper.figures import Curve, CurvePanel
from rankfold.paper.reproduce import do_all
from rankfold.paper.tables import METRICS, Measured, measure, once, outcomes, read_tables

TABLES = read_tables()


@pytest.mark.filterwarnings("ignore:.*ended at max_iter")
@pytest.mark.parametrize("guard", [False, True])
def test_one_walk_shows_what_single_runs_give(load, guard):
    yale = load("yale")
    rows = np.sort(np.random.default_rng(0).choice(165, 12, replace=False))
    course = follow(RAN(5, 90.0), yale, 10, n_queries=12, n_alternations=4)
    for step in (1, 2, 4):
        ranker = RAN(5, 90.0, max_iter=step, guard=guard, fusion="none")
        found = evaluate({"it": ranker}, yale, "precision@10", queries=rows, include_query=True)
        ours = (course.guarded if guard else course.free)[step - 1]
        assert ours == pytest.approx(100 * found.mean("it", "precision@10"))
    assert course.stopped > 0


@pytest.mark.slow
def test_removing_the_diagonal_lifts_transduction_on_usps(load):
    (usps,) = (table for table in TABLES if table.dataset == "usps")
    work = extras.diagonal_work([usps], {"usps": load("usps")})
    kept, bare = (work["diagonal", "Table 3", "GT, 300 steps", key]() for key in ("on", "off"))
    assert kept.precision == pytest.approx(47.235, abs=1e-6)
    assert bare.precision == pytest.approx(56.730, abs=1e-6)


def test_findings_tell_of_rivals_that_gain_without_more_steps(load):
    hidden = TABLES[-1]
    work = extras.diagonal_work([hidden], {"yale": load("yale")})
    bare = {name: piece() for name, piece in work.items() if name[-1] == "off"}
    printed = {("Hidden table", row.method): Measured(*_printed(row)) for row in hidden.rows}
    course = Course(np.ones(2), np.ones(2), 0.0)
    found = {**bare, **printed, ("alternations", "yale", "raw"): course}
    *_, rivals = report.findings_section([hidden], found).paragraphs
    assert "in Hidden table (70.97; now 72.85 by LCDP; RAN's row 71.94)" in rivals


def _printed(row):
    return [row.figures[metric].printed for metric in METRICS]


@pytest.mark.filterwarnings("ignore:.*ended at max_iter")
def test_objective_never_rises(load):
    values = figures.trace(load("usps")).objective
    assert len(values) > 4
    assert (np.diff(values) <= 1e-9 * values[0]).all()


def test_work_is_done_in_the_order_of_its_names_in_any_number_of_processes():
    moons = datasets.load("moons")
    work = figures.pattern_work({"moons": moons, "rings": datasets.load("rings")})
    one, two = do_all(work, 1), do_all(work, 2)
    assert list(one) == list(two) == [("figure", "moons"), ("figure", "rings")]
    for name in one:
        np.testing.assert_array_equal(one[name]["shape"], two[name]["shape"])


def test_query_counts_as_found_and_as_relevant():
    moons = datasets.load("moons")
    assert measure(RAN(10), moons, 1) == pytest.approx((100.0, 0.5))


def test_score_of_the_patterns_follows_the_shape():
    for name, (_, _, smoothness, choose) in figures.PATTERNS.items():
        data = datasets.load(name)
        found = figures.scores(data, smoothness)
        same = data.labels == data.labels[choose(data)]
        assert found["shape"][same].min() > found["shape"][~same].max()
        assert found["plain"][same].min() < found["plain"][~same].max()
        assert all(values.min() >= 0 and values.max() == 1 for values in found.values())


def test_names_beside_lines_do_not_meet():
    figure = figures.draw(
        "Title",
        "Subtitle",
        (CurvePanel("", (Curve("a", (1, 2), (3, 4), "k"),), levels=(("b", 4.0), ("c", 4.0))),),
        "x",
    )
    _, axes = figure.axes
    heights = sorted(text.get_position()[1] for text in axes.texts)
    assert len(heights) == 3
    assert np.diff(heights).min() > 0.04


def test_first_table_of_every_data_set():
    assert [table.name for table in once(TABLES)] == ["Table 1", "Table 2", "Table 3"]
    assert outcomes((), {}) == []

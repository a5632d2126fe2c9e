"""An index of texts: results and query say what they are."""

import numpy as np
import pytest
from playwright.sync_api import expect
from running_service import running

from rankfold import Index
from rankfold.service.app import create_app

KINDS = ["astronomy.observing.telescopes", "cooking", "sailing"]
LONG = "which goes on for longer than any row of a list is wide, "


def text_of(row):
    return f"Text {row} about {KINDS[row % 3]},\n{LONG * 4}and ends with {row}."


def line_of(row):
    return " ".join(text_of(row).split())


@pytest.fixture(scope="module")
def texts():
    """Texts of three kinds, compared by angle."""
    rows = np.arange(60)
    noise = np.random.default_rng(0).normal(scale=0.3, size=(60, 4))
    payload = {
        "text": [text_of(row) for row in rows],
        "name": [f"text-{row}" for row in rows],
        "kind": [KINDS[row % 3] for row in rows],
    }
    X = np.eye(4)[rows % 3] + noise
    with Index.build(X, payload=payload, metric="cosine", n_neighbors=4) as index:
        yield index


@pytest.fixture(scope="module")
def notes():
    """Texts and nothing else."""
    X = np.random.default_rng(0).normal(size=(30, 2))
    payload = {"text": [text_of(row) for row in range(30)]}
    with Index.build(X, payload=payload, n_neighbors=4) as index:
        yield index


@pytest.fixture(scope="module")
def served(texts, notes):
    with running(create_app({"texts": texts, "notes": notes})) as client:
        yield str(client.base_url)


@pytest.fixture
def address(served):
    return served


def test_results_and_query_show_their_texts(shown, page, texts):
    shown.open("#texts?ids=7&not=2")
    for side, method in (("plain", "euclidean"), ("shape", "ran")):
        answer = texts.query(7, negative=[2], top=20, method=method)
        lines = page.locator(f"#list-{side} .text")
        assert lines.all_text_contents() == [text_of(row) for row in answer.ids]
        assert lines.first.get_attribute("title") == text_of(answer.ids[0])
        said = shown.rows(side)[0]["says"]
        assert f", {line_of(answer.ids[0])[:79]}…, kind " in said
        assert LONG * 2 not in said
    expect(shown["example-text"]).to_have_text([line_of(7), line_of(2)])
    assert shown.query() == ["7", "✗ not 2"]


def test_texts_keep_to_one_line_and_values_are_whole(shown, page, texts):
    page.set_viewport_size({"width": 1400, "height": 900})
    shown.open("#texts?ids=7")
    expect(shown["judge"]).to_have_value("kind")
    values = texts.payload(shown.ids("shape"), ["kind"])["kind"]
    assert [row["value"] for row in shown.rows("shape")] == values
    whole = "all => all.filter(one => one.scrollWidth > one.clientWidth).length"
    assert page.locator(".lists .value").evaluate_all(whole) == 0
    assert page.locator(".lists .text").evaluate_all(whole) == 40
    heights = "all => [...new Set(all.map(one => Math.round(one.clientHeight)))]"
    assert len(page.locator(".lists .pick").evaluate_all(heights)) == 1


@pytest.mark.parametrize("width", [1400, 800, 360])
def test_texts_stay_in_their_places(shown, page, width):
    page.set_viewport_size({"width": width, "height": 740})
    shown.open("#texts?ids=7,8&not=2")
    over = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.evaluate(over) <= 0
    for row in page.locator("#list-shape .result").all():
        text, name, marks = (
            row.locator(part).bounding_box() for part in (".text", ".name", ".marks")
        )
        assert text["x"] + text["width"] <= marks["x"] + 1
        assert text["y"] + text["height"] <= name["y"] + 1


def test_the_card_shows_more_of_the_text(shown, page):
    shown.open("#texts?ids=7")
    point = shown.ids("shape")[0]
    page.locator("#list-shape .pick").first.focus()
    expect(shown["why-whole"]).to_have_text(line_of(point))
    expect(shown["why-facts"]).to_have_text(f"name text-{point} · kind {KINDS[point % 3]}")


def test_nothing_is_shared_where_each_point_has_its_own_text(shown, page):
    shown.open("#notes?ids=7")
    expect(shown["judge"]).to_have_value("text")
    for side in ("plain", "shape"):
        expect(shown[f"judged-{side}"]).to_have_text("")
        rows = shown.rows(side)
        assert not any(row["other"] or row["value"] for row in rows)
        lines = page.locator(f"#list-{side} .text").all_text_contents()
        assert lines == [text_of(row["id"]) for row in rows]


def test_plain_distance_is_named_by_the_metric(shown):
    shown.open("#texts")
    expect(shown["lead"]).to_contain_text("Left: distance by angle.", use_inner_text=True)
    with shown.answered():
        shown["tab"].filter(has_text="notes").click()
    expect(shown["lead"]).to_contain_text("Left: straight-line distance.", use_inner_text=True)


def test_examples_have_no_texts(shown, page):
    shown.open("#two-moons")
    expect(page.locator(".lists .texts, .lists .text, #examples p")).to_have_count(0)


def test_several_examples_take_a_line_each(shown):
    shown.open("#texts?ids=7")
    alone = shown["example-text"].bounding_box()["height"]
    with shown.answered():
        shown.page.evaluate("() => { location.hash = '#texts?ids=7,8'; }")
    expect(shown["example-text"]).to_have_count(2)
    assert shown["example-text"].first.bounding_box()["height"] < alone / 2

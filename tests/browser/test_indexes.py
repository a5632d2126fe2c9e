"""Indexes of many kinds: texts, no points, one column, ids that look like markup or numbers."""

import json

import numpy as np
import pytest
from browser.page_view import lone
from playwright.sync_api import expect
from running_service import running

from rankfold import Index
from rankfold.service.app import create_app

MARKUP = [
    "<img src=x onerror='window.struck = 1'>",
    '"><script>window.struck = 1</script>',
    "<b>bold</b>",
    "' onfocus='window.struck = 1' autofocus='",
    "javascript:window.struck=1",
    "&lt;i&gt;",
    "${window.struck = 1}",
    "#two-moons?ids=1",
    "a,b&c=d;e",
    "007",
    "-5",
    '"quoted"',
]


@pytest.fixture(scope="module")
def markup():
    """Points whose ids and payload are markup."""
    X = np.random.default_rng(0).normal(size=(len(MARKUP), 2))
    with Index.build(X, ids=MARKUP, payload={"kind": MARKUP}, n_neighbors=3) as index:
        yield index


@pytest.fixture(scope="module")
def line():
    """Points of one number."""
    with Index.build(np.arange(12.0)[:, None] ** 2, n_neighbors=3) as index:
        yield index


@pytest.fixture(scope="module")
def large():
    """Points whose ids differ in a digit that browsers round away, and texts of numbers."""
    X = np.random.default_rng(0).normal(size=(12, 2))
    ids = [*(2**60 + step for step in range(10)), 1, "1"]
    with Index.build(X, ids=ids, payload={"code": [2**61 + 1] * 12}, n_neighbors=3) as index:
        yield index


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
def served(markup, line, large, texts, notes):
    X = np.random.default_rng(0).normal(size=(9, 3))
    with Index.build(X, n_neighbors=3) as empty, Index.build(X, n_neighbors=3) as plain:
        empty.remove(empty.ids)
        indexes = {"markup": markup, "empty": empty, "plain": plain, "line": line, "large": large}
        indexes |= {"texts": texts, "notes": notes}
        with running(create_app(indexes)) as client:
            yield str(client.base_url)


@pytest.fixture
def address(served):
    return served


@pytest.fixture
def harmless(page):
    """Nothing of the markup may have become part of the page."""
    yield
    assert page.evaluate("() => window.struck") is None
    assert page.locator("img[src=x], main b:text-is('bold'), main script").count() == 0


def typed(name):
    """Return an id as it is shown and typed: what looks like a number or a quote has quotes."""
    return json.dumps(name) if name.lstrip("-").isdigit() or name.startswith('"') else name


@pytest.mark.usefixtures("harmless")
def test_markup_is_shown_as_text(shown, markup):
    shown.open("#markup")
    for query in MARKUP[1:]:
        shown["ask-id"].fill(typed(query))
        with shown.answered():
            shown["ask"].click()
        assert shown.query() == [typed(query)]
        for side, method in (("plain", "distance"), ("shape", "ran")):
            answer = markup.query(query, top=20, method=method)
            assert shown.ids(side) == answer.ids
            names = shown.page.locator(f"#list-{side} .name").all_text_contents()
            assert names == [typed(name) for name in answer.ids]


def test_links_hold_any_id(shown):
    shown.open("#markup?ids=%22007%22")
    assert shown.query() == ['"007"']
    for query in MARKUP:
        link = shown.page.evaluate(
            """async id => {
                const { emptyQuery, formatLink } = await import('/page/query.js');
                return formatLink({...emptyQuery(), index: 'markup', ids: [id]});
            }""",
            query,
        )
        with shown.answered():
            shown.page.evaluate("link => { location.hash = link; }", link)
        assert shown.query() == [typed(query)]


@pytest.mark.usefixtures("harmless")
def test_markup_is_text_on_the_card_and_in_the_legend(shown):
    shown.open("#markup?colour=column")
    for name in MARKUP[:3]:
        expect(shown["legend"]).to_contain_text(name)
    point = shown.ids("shape")[0]
    shown.page.locator("#list-shape .pick").first.focus()
    expect(shown["why"]).to_contain_text(f"Why is {typed(point)} here?")
    expect(shown["why-text"]).to_contain_text(point)
    shown.page.keyboard.press("r")
    expect(shown["live"]).to_have_text(f"{typed(point)} is marked as right.")


@pytest.mark.parametrize("width", [1280, 800, 360])
def test_long_texts_stay_in_their_places(shown, page, width):
    page.set_viewport_size({"width": width, "height": 740})
    shown.open("#markup")
    over = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.evaluate(over) <= 0
    # On a phone the parts of the controls stand among the others, and texts leave scores out.
    around, beside = ("#layout", ".move") if width < 640 else ("aside.controls", ".score")
    controls = page.locator(around).bounding_box()
    for name in ("open-vector", "slider-k", "judge", "examples"):
        box = shown[name].bounding_box()
        assert box["x"] + box["width"] <= controls["x"] + controls["width"] + 1
    for row in page.locator("#list-shape .pick").all():
        value, after = (row.locator(part).bounding_box() for part in (".value", beside))
        assert value["x"] + value["width"] <= after["x"] + 1


@pytest.mark.usefixtures("harmless")
def test_markup_in_a_link_is_text(shown, watch):
    shown.open(f"#{MARKUP[0]}")
    expect(shown["notice-text"]).to_contain_text(MARKUP[0])
    shown.page.goto("about:blank")
    shown.page.goto(f"/#markup?ids={MARKUP[2]}x")
    expect(shown["query-error"]).to_contain_text(f"{MARKUP[2]}x")
    watch.expect("status of 4")


def test_an_index_without_points_says_so(shown, page):
    page.goto("/#empty")
    expect(shown["lead"]).to_have_text(
        "empty has no points yet. They appear here once some are added."
    )
    page.keyboard.press("v")
    page.keyboard.press("Escape")
    with shown.answered():
        shown["tab"].filter(has_text="Two moons").click()
    expect(shown["lead"]).to_contain_text("the same 400 points")


def test_an_index_without_columns_has_nothing_to_judge_by(shown, page):
    shown.open("#plain")
    expect(page.locator("#judging")).to_be_hidden()
    for side in ("plain", "shape"):
        expect(shown[f"caption-{side}"]).to_have_text("")
        assert len(shown.ids(side)) == 8


def test_a_link_to_an_index_that_is_not_there(shown):
    shown.open("#gone?ids=1")
    expect(shown["notice-text"]).to_contain_text("There is no index “gone” here.")
    expect(shown.page.locator("nav [aria-current]")).to_have_text("markup")


def test_a_link_to_a_point_that_is_not_there(shown, page, watch):
    page.goto("/#two-moons?ids=4000")
    expect(shown["query-error"]).to_contain_text("4000")
    watch.expect("status of 4")
    with shown.answered():
        shown["ask-id"].fill("4")
        shown["ask"].click()
    expect(shown["query-error"]).to_have_text("")


def test_a_broken_link_still_opens(shown):
    shown.open()
    for rest in ("k=x", "%&&=", "?&&=", "vectors=a,b", "smoothness=-1", "k=9e99"):
        with shown.answered():
            shown.page.evaluate("link => { location.hash = link; }", f"#two-moons?{rest}")
        assert len(shown.ids("shape")) == 20


def test_a_click_beside_points_of_one_number_asks_with_one(shown, page, line):
    shown.open("#line?ids=3")
    x, y = shown.pixel_of("plain", 10, line)
    ahead = shown.pixel_of("plain", 11, line)[0]
    with page.expect_request("**/query") as sent:
        shown.click("plain", [(x + ahead) / 2, y])
    query = sent.value.post_data_json["queries"][0]
    assert query["ids"] == []
    ((value,),) = query["vectors"]
    assert value == pytest.approx((100 + 121) / 2, abs=0.5)
    assert shown.ids("plain")[0] in (10, 11)


def test_large_whole_numbers_stay_exact(shown, page, large):
    query = 2**60 + 3
    shown.open(f"#large?ids={query}")
    assert shown.query() == [str(query)]
    answer = [json.dumps(name) for name in large.query(query, top=20).ids]
    assert page.locator("#list-shape .name").all_text_contents() == answer
    pick = page.locator("#list-shape .pick").first
    pick.focus()
    expect(shown["why-text"]).to_contain_text(f"Why is {answer[0]} here?")
    page.keyboard.press("w")
    with shown.answered():
        page.keyboard.press("a")
    assert shown.query() == [str(query), f"✗ not {answer[0]}"]
    shown["ask-id"].fill(str(query + 1))
    with shown.answered():
        shown["ask"].click()
    assert shown.link == f"#large?ids={query + 1}"


def test_numbers_and_texts_of_numbers_look_different(shown, page):
    shown.open("#large?ids=1")
    names = page.locator("#list-shape .name").all_text_contents()
    assert '"1"' in names
    assert "1" not in names


def test_a_browser_that_rounds_says_so(shown, page):
    page.add_init_script("delete JSON.rawJSON;")
    page.goto("/#large")
    expect(shown["notice-text"]).to_contain_text("This browser would round the whole numbers")


def test_results_and_query_show_their_texts(shown, page, texts):
    shown.open("#texts?ids=7&not=2")
    for side, method in (("plain", "distance"), ("shape", "ran")):
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


def test_a_point_of_the_map_says_what_it_is(shown, texts):
    shown.open("#texts?ids=7")
    listed = {7, *shown.ids("plain"), *shown.ids("shape")}
    point = next(one for one in lone(texts, 60) if one not in listed)
    x, y = shown.pixel_of("plain", point, texts)
    shown["map-plain"].hover(position={"x": x, "y": y})
    expect(shown["why-whole"]).to_have_text(line_of(point))
    expect(shown["why-text"]).to_contain_text(f"Why is {point} here?")

"""A small screen and a finger."""

import json

import pytest
from browser.page_view import lone
from playwright.sync_api import expect

SIDEWAYS = """() => {
    const root = document.documentElement;
    return [root.scrollWidth - root.clientWidth, document.body.scrollWidth - root.clientWidth];
}"""
CROOKED = """() => [...document.querySelectorAll('button, input, select, summary')]
    .filter(one => one.checkVisibility() && !one.closest('nav, .hidden'))
    .filter(one => {
        const box = one.getBoundingClientRect();
        return box.left < 0 || box.right > innerWidth || box.height < 20 || box.width < 20;
    }).map(one => one.outerHTML.slice(0, 90))"""


@pytest.fixture
def viewport():
    return (360, 740)


@pytest.fixture
def manners():
    return {"reduced_motion": "reduce", "has_touch": True, "is_mobile": True}


def tap_map(shown, side, at):
    shown[f"map-{side}"].tap(position=dict(zip("xy", at, strict=True)))


@pytest.mark.parametrize("link", ["#two-moons?ids=17,3&not=200", "#three-rings", "#digits"])
def test_nothing_is_beyond_the_edge(shown, page, link):
    shown.open(link)
    shown["more"].locator("summary").tap()
    assert max(page.evaluate(SIDEWAYS)) <= 0
    assert page.evaluate(CROOKED) == []
    point = shown.ids("shape")[1]
    row = shown.reach("shape", point)
    row.get_by_test_id("mark-right").tap()
    expect(shown["feedback"]).to_be_visible()
    row.locator(".pick").tap()
    expect(shown["why-text"]).to_be_attached()
    assert max(page.evaluate(SIDEWAYS)) <= 0
    assert page.evaluate(CROOKED) == []
    card, marks = shown["why"].bounding_box(), shown["feedback"].bounding_box()
    assert card["y"] + card["height"] <= marks["y"]  # the card does not hide the buttons


def test_dialogs_fit(shown, page):
    shown.open()
    for name, dialog in (("help", "help-dialog"), ("open-vector", "vector-dialog")):
        shown[name].tap()
        box = shown[dialog].bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 360
        assert box["height"] <= 740
        assert max(page.evaluate(SIDEWAYS)) <= 0
        page.keyboard.press("Escape")


def test_a_tap_on_the_map_asks(shown, moons):
    shown.open("#two-moons?ids=17")
    [point] = lone(moons, 1)
    with shown.answered():
        tap_map(shown, "plain", shown.pixel_of("plain", point, moons))
    assert shown.query() == [str(point)]
    assert shown.ids("shape") == moons.query(point, top=20).ids


def test_the_first_tap_on_a_result_explains_and_the_second_asks(shown, moons):
    shown.open("#two-moons?ids=17")
    answers = shown.answers
    point = shown.ids("shape")[3]
    row = shown.reach("shape", point).locator(".pick")
    row.tap()
    expect(shown["why"]).to_have_attribute("data-about", json.dumps(point))
    expect(shown["why-text"]).to_be_attached()
    assert shown.answers == answers
    with shown.answered():
        row.tap()
    assert shown.ids("shape") == moons.query(point, top=20).ids


def test_one_list_at_a_time(shown, page):
    shown.open("#two-moons?ids=17")
    expect(shown["list-shape"]).to_be_visible()
    expect(shown["list-plain"]).to_be_hidden()
    page.get_by_role("button", name="Plain distance", exact=True).tap()
    expect(shown["list-plain"]).to_be_visible()
    expect(shown["list-shape"]).to_be_hidden()


def test_feedback_with_a_finger(shown, moons):
    shown.open("#two-moons?ids=17")
    right, wrong = shown.ids("shape")[4], shown.ids("shape")[0]
    shown.reach("shape", right).get_by_test_id("mark-right").tap()
    shown.reach("shape", wrong).get_by_test_id("mark-wrong").tap()
    with shown.answered():
        shown["ask-again"].tap()
    expected = moons.query(17, top=20).refine(right=right, wrong=wrong)
    assert shown.ids("shape") == expected.ids


def test_two_fingers_zoom_both_maps(shown, page, context):
    shown.open("#two-moons?ids=17")
    box = shown["map-plain"].bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    session = context.new_cdp_session(page)
    answers = shown.answers

    def touch(kind, *points):
        session.send(
            "Input.dispatchTouchEvent",
            {"type": kind, "touchPoints": [{"x": x, "y": y, "id": i} for i, (x, y) in points]},
        )

    touch("touchStart", (0, (x - 20, y)), (1, (x + 20, y)))
    for reach in (30, 50, 70):
        touch("touchMove", (0, (x - reach, y)), (1, (x + reach, y)))
    touch("touchEnd")
    for side in ("plain", "shape"):
        expect(shown[f"map-{side}"]).to_have_attribute("data-zoomed", "true")
    assert shown.answers == answers
    shown["fit"].tap()
    expect(shown["map-shape"]).to_have_attribute("data-zoomed", "false")


def test_the_query_comes_first_and_results_before_what_can_be_set(shown):
    shown.open("#two-moons?ids=17")
    parts = ("ask-form", "map-plain", "list-shape", "slider-k")
    tops = [shown[part].bounding_box()["y"] for part in parts]
    assert tops == sorted(tops)

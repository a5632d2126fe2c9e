"""Marking results as right or wrong, and asking again."""

import pytest
from playwright.sync_api import expect

QUERY = 17


def refined(index, method, right, wrong):
    return index.query(QUERY, top=20, method=method).refine(right=right, wrong=wrong).ids


def mark_by_mouse(shown, point, mark):
    shown.reach("shape", point).get_by_test_id(f"mark-{mark}").click()


def mark_by_keys(shown, point, mark):
    shown.row("shape", point).locator(".pick").focus()
    shown.page.keyboard.press(mark[0])


@pytest.mark.parametrize("mark", [mark_by_mouse, mark_by_keys])
def test_marks_change_the_answer_as_refine_does(shown, page, moons, mark):
    shown.open(f"#two-moons?ids={QUERY}")
    right, wrong = shown.ids("shape")[12], shown.ids("shape")[1]
    expect(shown["feedback"]).to_be_hidden()
    mark(shown, right, "right")
    mark(shown, wrong, "wrong")
    expect(shown["marked"]).to_have_text("1 right, 1 wrong")
    pressed = page.locator("#list-shape [aria-pressed=true]")
    assert {one.get_attribute("aria-label") for one in pressed.all()} == {
        f"Mark {right} as right",
        f"Mark {wrong} as wrong",
    }
    with shown.answered(), page.expect_request("**/query") as sent:
        if mark is mark_by_mouse:
            shown["ask-again"].click()
        else:
            page.keyboard.press("a")
    for query in sent.value.post_data_json["queries"]:
        assert (query["ids"], query["negative"]) == ([QUERY, right], [wrong])
    assert shown.ids("plain") == refined(moons, "euclidean", right, wrong)
    assert shown.ids("shape") == refined(moons, "ran", right, wrong)
    assert shown.query() == [str(QUERY), str(right), f"✗ not {wrong}"]
    expect(shown["feedback"]).to_be_hidden()


def test_marks_are_taken_back(shown):
    shown.open(f"#two-moons?ids={QUERY}")
    first, second, third = shown.ids("shape")[:3]
    mark_by_mouse(shown, first, "right")
    mark_by_mouse(shown, first, "wrong")
    expect(shown["marked"]).to_have_text("0 right, 1 wrong")
    mark_by_mouse(shown, first, "wrong")
    expect(shown["feedback"]).to_be_hidden()
    mark_by_mouse(shown, second, "right")
    mark_by_mouse(shown, third, "right")
    expect(shown["marked"]).to_have_text("2 right, 0 wrong")
    answers = shown.answers
    shown["clear-marks"].click()
    expect(shown["feedback"]).to_be_hidden()
    expect(shown.page.locator("#list-shape [aria-pressed=true]")).to_have_count(0)
    assert shown.answers == answers


def test_marks_outlast_a_slider_but_not_another_query(shown):
    shown.open(f"#two-moons?ids={QUERY}")
    point = shown.ids("shape")[0]
    mark_by_mouse(shown, point, "right")
    with shown.answered():
        shown["slider-smoothness"].press("ArrowRight")
    expect(shown["marked"]).to_have_text("1 right, 0 wrong")
    with shown.answered():
        shown.reach("shape", point).locator(".pick").click()
    expect(shown["feedback"]).to_be_hidden()


def test_a_negative_example_is_taken_away(shown, page, moons):
    shown.open(f"#two-moons?ids={QUERY}&not=200")
    assert shown.ids("shape") == moons.query(QUERY, negative=200, top=20).ids
    with shown.answered():
        page.get_by_role("button", name="Remove ✗ not 200").click()
    assert shown.ids("shape") == moons.query(QUERY, top=20).ids


def test_marks_are_drawn_on_the_maps(shown):
    shown.open(f"#two-moons?ids={QUERY}")
    point = shown.ids("shape")[9]
    shown.reach("shape", point)
    before = shown.picture("plain")
    mark_by_mouse(shown, point, "wrong")
    assert (shown.picture("plain") != before).any()


def test_card_and_list_agree_on_places_after_marks(shown):
    shown.open("#two-moons?ids=1&not=5,6")
    for rank, point in enumerate(shown.ids("shape")[:6], 1):
        shown.row("shape", point).locator(".pick").focus()
        expect(shown["why-text"]).to_contain_text(f"Why is {point} here?")
        (row,) = [row for row in shown.rows("shape") if row["id"] == point]
        expect(shown["why-places"].locator("b").last).to_have_text(str(rank))
        expect(shown["why-places"].locator(".move")).to_have_text(row["move"])

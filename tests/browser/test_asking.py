"""Asking with points, with places, and with several examples."""

import numpy as np
import pytest
from browser.showing import lone
from playwright.sync_api import expect


def answers(index, **query):
    return [index.query(**query, top=20, method=method).ids for method in ("distance", "ran")]


def lists(shown):
    return [shown.ids("plain"), shown.ids("shape")]


@pytest.mark.parametrize("side", ["plain", "shape"])
def test_a_click_on_a_point_asks_with_it(shown, moons, side):
    shown.open()
    before = lists(shown)
    [point] = lone(moons, 1)
    shown.click(side, shown.pixel_of(side, point, moons))
    assert shown.query() == [str(point)]
    assert lists(shown) == answers(moons, ids=point)
    assert lists(shown) != before
    assert shown.link == f"#two-moons?ids={point}"


@pytest.mark.parametrize("key", ["Shift", "Alt"])
def test_a_click_with_a_key_adds_an_example(shown, moons, key):
    shown.open("#two-moons?ids=17")
    [point] = lone(moons, 1)
    shown.click("plain", shown.pixel_of("plain", point, moons), modifiers=[key])
    assert shown.query() == ["17", str(point)]
    assert lists(shown) == answers(moons, ids=[17, point])


def test_a_click_on_an_empty_place_asks_with_a_vector(shown, moons):
    shown.open()
    _, places = moons.places()
    place = places.min(axis=0) + np.array([0.05, 0.05])  # a corner, far from both moons
    shown.click("shape", shown.pixels("shape", place, moons).tolist())
    asked = np.array(shown.link.partition("vectors=")[2].split(","), float)
    corner = moons.vectors(moons.ids).min(axis=0)
    reach = np.ptp(moons.vectors(moons.ids), axis=0)
    assert np.all(np.abs((asked - corner) / reach) < 0.06)
    assert lists(shown) == answers(moons, vectors=asked)
    expect(shown["example"]).to_have_text(f"({asked[0]:.2f}, {asked[1]:.2f})")
    expect(shown["caption-shape"]).to_have_text("")  # a vector has no moon of its own


def test_examples_are_taken_away_and_undone(shown, moons, page):
    shown.open("#two-moons?ids=17,3")
    with shown.answered():
        page.get_by_role("button", name="Remove 17").click()
    assert lists(shown) == answers(moons, ids=3)
    expect(page.get_by_role("button", name="Remove 3")).to_have_count(0)  # a query has an example
    with shown.answered():
        shown["undo"].click()
    assert shown.query() == ["17", "3"]
    assert lists(shown) == answers(moons, ids=[17, 3])


def test_a_result_is_asked_with(shown, moons):
    shown.open("#two-moons?ids=17")
    chosen = shown.ids("plain")[6]
    with shown.answered():
        shown.reach("plain", chosen).locator(".pick").click()
    assert lists(shown) == answers(moons, ids=chosen)
    another = shown.ids("shape")[2]
    with shown.answered():
        shown.reach("shape", another).locator(".pick").click(modifiers=["Shift"])
    assert lists(shown) == answers(moons, ids=[chosen, another])


def test_an_id_is_typed(shown, moons, page):
    shown.open()
    page.keyboard.press("/")
    expect(shown["ask-id"]).to_be_focused()
    with shown.answered():
        page.keyboard.type("250\n")
    assert lists(shown) == answers(moons, ids=250)


def test_an_unknown_id_is_said_at_the_field(shown, watch):
    shown.open()
    before = lists(shown)
    shown["ask-id"].fill("nobody")
    shown["ask"].click()
    expect(shown["query-error"]).to_contain_text("nobody")
    expect(shown["ask-id"]).to_have_attribute("aria-invalid", "true")
    assert lists(shown) == before
    watch.expect("status of 4")
    with shown.answered():
        shown["ask-id"].fill("5")
        shown["ask"].click()
    expect(shown["query-error"]).to_have_text("")


def test_back_goes_through_queries(shown, moons, page):
    shown.open("#two-moons?ids=17")
    first, second = lone(moons, 2)
    shown.click("plain", shown.pixel_of("plain", first, moons))
    shown.click("plain", shown.pixel_of("plain", second, moons))
    for query in (first, 17):
        with shown.answered():
            page.go_back()
        assert lists(shown) == answers(moons, ids=query)
    with shown.answered():
        page.go_forward()
    assert shown.query() == [str(first)]


def test_digits_are_asked_with_by_a_click(shown, numerals):
    shown.open("#digits")
    [point] = lone(numerals, 1)
    shown.click("shape", shown.pixel_of("shape", point, numerals))
    assert shown.query() == [str(point)]
    assert lists(shown) == answers(numerals, ids=point)

"""The page as the real service hands it out: what is on it first, and what it may not do."""

import numpy as np
import pytest
from playwright.sync_api import expect

DASH = "\N{EN DASH}"
METHODS = ("distance", "ran")
FIRST_LOOK = {"two-moons": (0.98, 0.1), "three-rings": (0, 2)}


def first_query(index, place):
    away = index.vectors(index.ids) - np.array(place)
    return index.ids[int(np.argmin(np.sum(away**2, axis=1)))]


def shared(index, query, method, column):
    """Return how many of the first share the value of the query, and how many could."""
    own = index.payload([query])[column][0]
    values = index.payload(index.ids)[column]
    kin = values.count(own) - 1
    answer = index.query(query, top=kin, method=method)
    return answer.payload[column].count(own), kin


def test_page_opens(page):
    response = page.goto("/#two-moons", wait_until="networkidle")
    assert response.status == 200
    assert page.title() == f"Two moons {DASH} rankfold"


def test_an_index_of_ones_own_comes_before_the_examples(shown):
    shown.open("")
    expect(shown.page.locator("nav [aria-current]")).to_have_text("digits")
    assert shown.page.title() == f"digits {DASH} rankfold"


@pytest.mark.parametrize(
    ("link", "name", "column"),
    [("#two-moons", "two-moons", "moon"), ("#three-rings", "three-rings", "ring")],
    ids=["moons", "rings"],
)
def test_examples_open_with_a_query_and_say_how_many_belong_to_it(
    shown, examples, link, name, column
):
    index = examples[name]
    query = first_query(index, FIRST_LOOK[name])
    shown.open(link)
    assert shown.query() == [str(query)]
    own = index.payload([query])[column][0]
    for side, method in (("plain", "distance"), ("shape", "ran")):
        same, kin = shared(index, query, method, column)
        expect(shown[f"caption-{side}"]).to_have_text(
            f"{same} of the first {kin} share {column} {own}"
        )
    assert shared(index, query, "ran", column)[0] > shared(index, query, "distance", column)[0]
    expect(shown["lead"]).to_contain_text(f"the same {len(index)} points")


def test_a_far_point_of_the_same_moon_is_reached_along_it(shown, moons):
    """What the docs show."""
    query, far = (first_query(moons, place) for place in ((0.98, 0.1), (-0.9, 0.4)))
    shown.open()
    x, y = shown.pixel_of("shape", far, moons)
    shown["map-shape"].hover(position={"x": x, "y": y})
    expect(shown["why"]).to_contain_text(f"Why is {far} here?")
    places = [moons.query(query, top=399, method=method).ids.index(far) + 1 for method in METHODS]
    expect(shown["why"]).to_contain_text("The strongest path has")
    expect(shown["why"]).to_contain_text(f"\N{BLACK UP-POINTING TRIANGLE} {places[0] - places[1]}")


def test_lists_hold_the_answers_of_the_library(shown, moons):
    query = first_query(moons, FIRST_LOOK["two-moons"])
    shown.open()
    for side, method in (("plain", "distance"), ("shape", "ran")):
        answer = moons.query(query, top=20, method=method)
        assert shown.ids(side) == answer.ids
        own = moons.payload([query])["moon"][0]
        same = answer.payload["moon"].count(own)
        expect(shown[f"judged-{side}"]).to_have_text(
            f"{same} of 20 share moon {own} with the query"
        )
        assert [row["other"] for row in shown.rows(side)] == [
            value != own for value in answer.payload["moon"]
        ]


def test_tabs_and_the_back_button(shown, page):
    shown.open()
    expect(shown["tab"]).to_have_text(["digits", "Two moons", "Three rings"])
    first = shown.ids("shape")
    with shown.answered():
        shown["tab"].nth(2).click()
    expect(page.locator("nav [aria-current]")).to_have_text("Three rings")
    assert page.title() == f"Three rings {DASH} rankfold"
    assert shown.link.startswith("#three-rings")
    assert shown.ids("shape") != first
    with shown.answered():
        page.go_back()
    expect(page.locator("nav [aria-current]")).to_have_text("Two moons")
    assert shown.ids("shape") == first


def test_a_link_shows_the_same_again(shown, page):
    shown.open()
    with shown.answered():
        shown["slider-k"].press("ArrowRight")
    with shown.answered():
        shown.reach("shape", shown.ids("shape")[4]).locator(".pick").click()
    link, ids, query = shown.link, shown.ids("shape"), shown.query()
    assert "k=11" in link
    page.goto("about:blank")
    shown.open(link)
    assert (shown.query(), shown.ids("shape"), shown.link) == (query, ids, link)
    expect(shown["value-k"]).to_have_text("11")


def test_reloading_shows_the_same_again(shown, page):
    shown.open("#two-moons?ids=7,9&not=200&smoothness=5")
    before = shown.ids("plain"), shown.ids("shape"), shown.query()
    page.reload()
    shown.wait(0)
    assert (shown.ids("plain"), shown.ids("shape"), shown.query()) == before
    assert before[2] == ["7", "9", "✗ not 200"]


def test_digits_have_a_map_and_pictures(shown, page):
    shown.open("#digits")
    info = page.evaluate("() => fetch('/v1/indexes/digits').then(answer => answer.json())")
    assert info["layout"] == "graph"
    assert (info["image"]["width"], info["image"]["height"]) == (8, 8)
    pictures = page.locator("#list-shape img")
    expect(pictures).to_have_count(20)
    assert (
        pictures.evaluate_all("all => all.map(one => one.src.slice(0, 22))")
        == ["data:image/png;base64,"] * 20
    )


def test_browser_may_load_nothing_from_elsewhere(page, watch):
    page.goto("/")
    page.evaluate("() => fetch('http://127.0.0.1:9/').catch(() => {})")
    watch.expect("Content Security Policy")
    watch.troubles.clear()  # how else it is told depends on the version of the browser


def test_browser_runs_no_script_within_the_page(shown, page, watch):
    shown.open()
    page.evaluate(
        """() => {
            const script = document.createElement('script');
            script.textContent = 'window.struck = 1';
            document.body.append(script);
        }"""
    )
    assert page.evaluate("() => window.struck") is None
    watch.expect("Content Security Policy")


def test_the_page_may_not_be_framed(page):
    headers = page.goto("/").headers
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"

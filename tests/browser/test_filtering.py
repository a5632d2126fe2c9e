"""Filter, diversity and other methods."""

import pytest
from playwright.sync_api import expect

QUERY = 17


@pytest.fixture
def opened(shown):
    shown.open(f"#two-moons?ids={QUERY}")
    shown["more"].locator("summary").click()
    return shown


def test_a_condition_filters_both_lists(opened, page, moons):
    other = 1 - moons.payload([QUERY])["moon"][0]
    where = f"moon = {other}"
    opened["where"].fill(where)
    with opened.answered():
        page.keyboard.press("Enter")
    for side, method in (("plain", "euclidean"), ("shape", "ran")):
        answer = moons.query(QUERY, top=20, method=method, where=where)
        assert opened.ids(side) == answer.ids
        assert set(answer.payload["moon"]) == {other}
    opened["where"].fill("")
    with opened.answered():
        page.keyboard.press("Enter")
    assert opened.ids("shape") == moons.query(QUERY, top=20).ids


def test_a_bad_condition_is_said_at_its_field(opened, page, watch):
    before = opened.ids("shape")
    opened["where"].fill("moon >> 3")
    page.keyboard.press("Enter")
    expect(opened["where-error"]).to_contain_text("moon")
    expect(opened["where"]).to_have_attribute("aria-invalid", "true")
    assert opened.ids("shape") == before
    watch.expect("status of 422")
    opened["where"].fill("moon = 0")
    with opened.answered():
        page.keyboard.press("Enter")
    expect(opened["where-error"]).to_have_text("")


def test_a_bad_condition_in_a_link_opens_the_field(shown, page, watch):
    page.goto("/#two-moons?where=colour%20%3D%201")
    expect(shown["where-error"]).to_contain_text("colour")
    expect(shown["where-error"]).to_be_visible()
    watch.expect("status of 422")


def test_a_filter_that_nothing_meets(opened, page):
    opened["where"].fill("moon = 5")
    with opened.answered():
        page.keyboard.press("Enter")
    for side in ("plain", "shape"):
        expect(opened[f"list-{side}"]).to_have_text("No point meets the filter.")


def test_diversity_changes_the_list(opened, page, moons):
    opened["slider-diversity"].focus()
    with opened.answered():
        for _ in range(10):
            page.keyboard.press("ArrowRight")
    expect(opened["value-diversity"]).to_have_text("0.5")
    diverse = moons.query(QUERY, top=20, diversity=0.5).ids
    assert diverse != moons.query(QUERY, top=20).ids
    assert opened.ids("shape") == diverse


TITLES = {
    "euclidean": "Plain distance again",
    "self_diffusion": "Shape (self-diffusion)",
    "pagerank": "Shape (personalised PageRank)",
    "manifold": "Shape (manifold ranking)",
    "transduction": "Shape (graph transduction)",
    "lcdp": "Shape (locally constrained diffusion)",
    "tensor": "Shape (tensor-product diffusion)",
    "k_reciprocal": "Shape (k-reciprocal re-ranking)",
    "lhrr": "Shape (hypergraph ranking)",
    "query_expansion": "Shape (query expansion)",
}


def test_every_method_can_be_chosen(opened, moons):
    methods = opened["method"].locator("option").all_inner_texts()
    assert {*methods} == {"ran", *TITLES}
    for method in methods:
        if method == "ran":
            continue
        with opened.answered():
            opened["method"].select_option(method)
        assert opened.ids("shape") == moons.query(QUERY, top=20, method=method).ids
        expect(opened.page.locator("#shape-title")).to_have_text(TITLES[method])
        expect(opened["slider-k"]).to_be_disabled()
        assert f"method={method}" in opened.link
    with opened.answered():
        opened["method"].select_option("ran")
    assert opened.ids("shape") == moons.query(QUERY, top=20).ids


def test_a_card_says_of_a_point_that_it_does_not_meet_the_filter(shown, page, moons):
    near, *_ = moons.query(QUERY, method="distance").ids
    moon = moons.payload([near])["moon"][0]
    shown.open(f"#two-moons?ids={QUERY}&where=moon%20%3D%20{1 - moon}")
    x, y = shown.pixel_of("plain", near, moons)
    shown["map-plain"].hover(position={"x": x, "y": y})
    expect(shown["why"]).to_contain_text(f"Why is {near} here?")
    expect(shown["why-places"]).to_have_text("does not meet the filter")

"""Parameters: sliders, proof, fusion with distance, filter, diversity and method."""

import pytest
from playwright.sync_api import expect

QUERY = 17


def shape(index, query=QUERY, **parameters):
    return index.query(query, top=20, **parameters).ids


def test_a_key_moves_a_slider_and_the_answer_follows(shown, moons):
    shown.open(f"#two-moons?ids={QUERY}")
    assert shown.ids("shape") == shape(moons)
    plain = shown.ids("plain")
    for n_neighbors in (11, 12):
        with shown.answered():
            shown["slider-k"].press("ArrowRight")
        expect(shown["value-k"]).to_have_text(str(n_neighbors))
        assert shown.ids("shape") == shape(moons, n_neighbors=n_neighbors)
    assert shape(moons, n_neighbors=12) != shape(moons)
    assert shown.ids("plain") == plain
    expect(shown["slider-k"]).to_be_focused()


@pytest.mark.parametrize(("part", "name"), [(0.15, "smoothness"), (0.9, "smoothness")])
def test_a_slider_is_pulled_with_the_mouse(shown, page, moons, part, name):
    shown.open(f"#two-moons?ids={QUERY}")
    slider = shown[f"slider-{name}"]
    box = slider.bounding_box()
    y = box["y"] + box["height"] / 2
    with shown.answered():
        page.mouse.move(box["x"] + box["width"] / 2, y)
        page.mouse.down()
        page.mouse.move(box["x"] + part * box["width"], y, steps=8)
        page.mouse.up()
    value = float(shown[f"value-{name}"].inner_text())
    assert value < 1 if part < 0.5 else value > 100
    assert shown.ids("shape") == shape(moons, smoothness=value)
    page.wait_for_function("() => location.hash.includes('smoothness=')")


def test_the_latest_wins(shown, page, moons):
    sent = []
    page.on("request", lambda request: request.url.endswith("/query") and sent.append(request))
    shown.open(f"#two-moons?ids={QUERY}")
    sent.clear()
    shown["slider-k"].focus()
    with shown.answered():
        for _ in range(12):
            page.keyboard.press("ArrowRight")
    expect(shown["value-k"]).to_have_text("22")
    assert shown.ids("shape") == shape(moons, n_neighbors=22)
    asked = [request.post_data_json["queries"][1]["parameters"]["n_neighbors"] for request in sent]
    assert asked == sorted(asked)
    assert asked[-1] == 22


def test_reset_takes_everything_back(shown, moons):
    shown.open(f"#two-moons?ids={QUERY}&k=9&smoothness=3&alternations=2")
    assert shown.ids("shape") == shape(moons, n_neighbors=9, smoothness=3, max_iter=2)
    with shown.answered():
        shown["reset"].click()
    assert shown.ids("shape") == shape(moons)
    expect(shown["reset"]).to_be_hidden()
    for name, value in (("k", "10"), ("smoothness", "30"), ("alternations", "1")):
        expect(shown[f"value-{name}"]).to_have_text(value)
    assert shown.link == f"#two-moons?ids={QUERY}"


def test_the_certificate_is_that_of_the_answer(shown, moons):
    shown.open(f"#two-moons?ids={QUERY}")
    solution = moons.query(QUERY, top=len(moons)).ranking.solution
    words = shown["certificate"].text_content().replace("\u00a0", " ")
    assert words.startswith("Certified") == solution.certified
    assert "alternation" not in words  # the graph was made once
    if solution.bound == 0:
        assert "exact" in words


HINT = (
    "Off: a fast answer from the points around the query. "
    "On: goes on until the best results are proven."
)


def budgets(page):
    """Return a list to which the budgets of requests will be added, None where there is none."""
    found = []

    def add(request):
        if request.url.endswith("/query"):
            found.append(
                [one["parameters"].get("budget") for one in request.post_data_json["queries"]]
            )

    page.on("request", add)
    return found


def test_the_switch_asks_for_a_proof(shown, page, moons):
    sent = budgets(page)
    shown.open(f"#two-moons?ids={QUERY}")
    expect(page.get_by_role("switch", name="Proven")).not_to_be_checked()
    expect(page.get_by_text("Proven", exact=True)).to_have_attribute("title", HINT)
    with shown.answered():
        page.get_by_text("Proven", exact=True).click()
    assert sent == [[None, 2000], [None, "proven"]]
    assert shown.link == f"#two-moons?ids={QUERY}&budget=proven"
    assert shown.ids("shape") == shape(moons, budget=None)
    with shown.answered():
        shown["proven"].press("Space")
    assert sent[2:] == [[None, 2000]]
    assert shown.link == f"#two-moons?ids={QUERY}"


def test_a_link_asks_for_a_proof_and_reset_takes_it_back(shown, page):
    sent = budgets(page)
    shown.open(f"#two-moons?ids={QUERY}&budget=proven&diversity=0.5")
    expect(shown["proven"]).to_be_checked()
    with shown.answered():
        shown["reset"].click()
    expect(shown["proven"]).not_to_be_checked()
    expect(shown["reset"]).to_be_hidden()
    assert sent == [[None, "proven", "proven"], [None, 2000, 2000]]


@pytest.mark.parametrize(
    ("method", "has_budget"),
    [("pagerank", True), ("manifold", True), ("distance", True), ("lcdp", False)],
)
def test_only_methods_with_a_budget_are_asked_for_a_proof(shown, page, moons, method, has_budget):
    sent = budgets(page)
    shown.open(f"#two-moons?ids={QUERY}&budget=proven&method={method}")
    assert sent == [[None, "proven" if has_budget else None]]
    expect(shown["proven"]).to_be_enabled(enabled=has_budget)
    assert shown.ids("shape") == shape(moons, method=method)


def test_a_card_explains_the_proven_answer(shown, page):
    shown.open(f"#two-moons?ids={QUERY}&budget=proven")
    with page.expect_request("**/explain") as asked:
        shown.row("shape", shown.ids("shape")[3]).locator(".pick").focus()
    assert asked.value.post_data_json["query"]["parameters"] == {"budget": "proven"}
    expect(shown["why"]).to_contain_text("here?")


def test_distance_is_chosen_kept_in_the_link_and_taken_back(shown, page, moons):
    shown.open(f"#two-moons?ids={QUERY}")
    expect(page.get_by_label("Distance", exact=True)).to_have_value("auto")
    assert shown.ids("shape") == shape(moons)
    for fusion in ("none", "reciprocal_rank"):
        with shown.answered():
            shown["fusion"].select_option(fusion)
        assert shown.link == f"#two-moons?ids={QUERY}&fusion={fusion}"
        assert shown.ids("shape") == shape(moons, fusion=fusion)
    with shown.answered():
        shown["reset"].click()
    expect(shown["fusion"]).to_have_value("auto")
    expect(shown["reset"]).to_be_hidden()
    assert shown.link == f"#two-moons?ids={QUERY}"
    with shown.answered():
        shown["fusion"].select_option("none")
    with shown.answered():
        shown["fusion"].select_option("auto")  # as it was: the link need not say so
    assert shown.link == f"#two-moons?ids={QUERY}"
    assert shown.ids("shape") == shape(moons)


def test_a_link_chooses_how_distance_counts(shown, moons):
    assert shape(moons, fusion="none") != shape(moons)
    shown.open(f"#two-moons?ids={QUERY}&fusion=none")
    expect(shown["fusion"]).to_have_value("none")
    assert shown.ids("shape") == shape(moons, fusion="none")


@pytest.mark.parametrize("method", ["pagerank", "lcdp", "distance"])
def test_other_methods_are_by_shape_unless_distance_is_chosen(shown, moons, method):
    shown.open(f"#two-moons?ids={QUERY}&method={method}")
    expect(shown["fusion"]).to_have_value("none")
    expect(shown["fusion"]).to_be_enabled(enabled=method != "distance")
    assert shown.ids("shape") == shape(moons, method=method)
    if method == "distance":
        return
    with shown.answered():
        shown["fusion"].select_option("auto")
    assert shown.link == f"#two-moons?ids={QUERY}&fusion=auto&method={method}"
    assert shown.ids("shape") == shape(moons, method=method, fusion="auto")


def short(value):
    return str(float(f"{value:.3g}"))


def test_results_and_cards_show_both_parts_of_a_score(shown, moons):
    shown.open(f"#two-moons?ids={QUERY}")
    answer = moons.query(QUERY, top=20)
    row = answer.rows()[5]
    words = f"shape {short(row['shape'])}, distance {short(row['distance'])}"
    pick = shown.row("shape", row["id"]).locator(".pick")
    score = f"score {short(row['score'])}"
    for told in ("title", "aria-label"):
        assert f"{score} ({words})" in pick.get_attribute(told)
    pick.focus()
    expect(shown["why-parts"]).to_have_text(f"{score}: {words}")
    assert "shape" not in shown.rows("plain")[5]["says"].split(" by ")[0]


def test_where_nothing_is_fused_no_parts_are_shown(shown, moons):
    shown.open(f"#two-moons?ids={QUERY}&fusion=none")
    row = shown.rows("shape")[5]
    assert "(" not in row["says"]
    shown.row("shape", row["id"]).locator(".pick").focus()
    expect(shown["why-text"]).to_be_attached()
    expect(shown["why-parts"]).to_have_text("")


ENDS = {
    "exact": ({"certified": True}, "Certified · error at most 0.012", "exact but for rounding"),
    "proven": (
        {"certified": True},
        "Certified · error at most 0.012 · 2,612 points seen",
        "when the best results were proven",
    ),
    "tolerance": (
        {"certified": False},
        "Within tolerance · error at most 0.012",
        "no score could be off by more than the tolerance",
    ),
    "budget": (
        {"certified": False},
        "Not proven · error at most 0.012 · 2,612 points seen",
        "ended early, with the points around the query; Proven goes on",
    ),
    "max_iter": (
        {"certified": False, "converged": False},
        "Gave up · error at most 0.012",
        "gave up before",
    ),
}


@pytest.mark.parametrize("stopped", ENDS)
def test_the_page_says_how_an_answer_ended(shown, page, stopped):
    facts, words, sentence = ENDS[stopped]

    def answer(route):
        response = route.fetch()
        told = response.json()
        told["answers"][1] |= {"stopped": stopped, "bound": 0.012, "touched": 2612, **facts}
        route.fulfill(response=response, json=told)

    page.route("**/query", answer)
    shown.open(f"#two-moons?ids={QUERY}")
    assert shown["certificate"].text_content().replace("\u00a0", " ") == words
    title = shown["certificate"].get_attribute("title")
    assert sentence in title
    assert title.endswith("no other point scores higher than these.") == facts["certified"]


@pytest.mark.parametrize(("query", "collapses"), [(0, True), (8, False)])
def test_a_collapse_is_said(shown, page, moons, query, collapses):
    shown.open(f"#two-moons?ids={query}&k=5")
    expect(shown["collapsed"]).to_be_hidden()
    shown["slider-alternations"].focus()
    with shown.answered():
        page.keyboard.press("End")
    answer = moons.query(query, top=20, n_neighbors=5, max_iter=10)
    assert answer.ranking.collapsed == collapses
    expect(shown["collapsed"]).to_be_visible(visible=collapses)
    count = answer.ranking.trace.n_alternations
    words = shown["certificate"].text_content().replace("\u00a0", " ")
    assert words.endswith(f"{count} alternation{'s' * (count != 1)}")
    assert shown.ids("shape") == answer.ids


def test_what_cannot_be_is_said_at_the_sliders(shown, page, watch, moons):
    page.goto(f"/#two-moons?ids={QUERY}&smoothness=100000000")
    expect(shown["tuning-error"]).to_contain_text("1000000")
    watch.expect("status of 422")
    with shown.answered():
        shown["reset"].click()
    expect(shown["tuning-error"]).to_have_text("")
    assert shown.ids("shape") == shape(moons)
    with shown.answered():
        shown["slider-k"].press("End")  # sliders end where the index can still answer
    most = int(shown["value-k"].inner_text())
    assert shown.ids("shape") == shape(moons, n_neighbors=most)


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
    for side, method in (("plain", "distance"), ("shape", "ran")):
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
    "distance": "Plain distance again",
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

"""Sliders: neighbours, smoothness, alternations."""

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
    assert sent == [[None, 2500], [None, "proven"]]
    assert shown.link == f"#two-moons?ids={QUERY}&budget=proven"
    assert shown.ids("shape") == shape(moons, budget=None)
    with shown.answered():
        shown["proven"].press("Space")
    assert sent[2:] == [[None, 2500]]
    assert shown.link == f"#two-moons?ids={QUERY}"


def test_a_link_asks_for_a_proof_and_reset_takes_it_back(shown, page):
    sent = budgets(page)
    shown.open(f"#two-moons?ids={QUERY}&budget=proven&diversity=0.5")
    expect(shown["proven"]).to_be_checked()
    with shown.answered():
        shown["reset"].click()
    expect(shown["proven"]).not_to_be_checked()
    expect(shown["reset"]).to_be_hidden()
    assert sent == [[None, "proven", "proven"], [None, 2500, 2500]]


@pytest.mark.parametrize(
    ("method", "has_budget"),
    [("pagerank", True), ("manifold", True), ("lcdp", False), ("euclidean", False)],
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


@pytest.mark.parametrize("method", ["pagerank", "lcdp", "euclidean"])
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

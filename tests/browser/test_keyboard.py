"""Everything without a mouse."""

from playwright.sync_api import expect

FOCUSED = """() => {
    const element = document.activeElement, style = getComputedStyle(element);
    const box = element.getBoundingClientRect();
    element.dataset.reached = 'yes';
    return {
        tag: element.tagName.toLowerCase(), name: element.id || element.textContent.slice(0, 20),
        ring: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2,
        seen: box.width > 0 && box.bottom > 0 && box.top < innerHeight,
    };
}"""
MISSED = """() =>
    [...document.querySelectorAll('a[href], button, input, select, summary, [tabindex]')]
    .filter(one => one.tabIndex >= 0 && !one.disabled && one.checkVisibility())
    .filter(one => !one.dataset.reached)
    .map(one => one.id || one.outerHTML.slice(0, 80))"""


def tab_through(page):
    """Press Tab until the page is left; return what had the focus."""
    stops = []
    while len(stops) < 80:
        page.keyboard.press("Tab")
        stop = page.evaluate(FOCUSED)
        if stop["tag"] == "body" or (stops and stop == stops[0]):
            return stops
        stops.append(stop)
    raise AssertionError("Tab never leaves the page")


def test_tab_reaches_everything_and_shows_where_it_is(shown, page):
    shown.open("#two-moons?ids=17,3&not=200&k=6")
    page.evaluate("() => { document.getElementById('more').open = true; }")
    stops = tab_through(page)
    assert page.evaluate(MISSED) == []
    assert [stop for stop in stops if not stop["ring"]] == []
    assert [stop for stop in stops if not stop["seen"]] == []
    names = [stop["name"] for stop in stops]
    order = ["skip", "theme", "map-plain", "map-shape", "ask-id", "slider-k", "where", "method"]
    assert [name for name in names if name in order] == order


def test_a_resting_mouse_does_not_take_the_card_from_the_keys(shown, page):
    shown.open("#two-moons?ids=17")
    rows = page.locator("#list-shape .pick")
    shown.reach("shape", shown.ids("shape")[3]).hover()
    rows.first.focus()
    for _ in range(12):
        page.keyboard.press("ArrowDown")
    expect(rows.nth(12)).to_be_focused()
    expect(shown["why"]).to_have_attribute("data-about", str(shown.ids("shape")[12]))
    expect(shown["why-text"]).to_be_attached()
    expect(shown["why"]).to_contain_text(f"Why is {shown.ids('shape')[12]} here?")


def test_a_journey_without_a_mouse(shown, page, moons):
    shown.open("#two-moons?ids=17")
    page.keyboard.press("Tab")
    expect(shown["skip"]).to_be_focused()
    page.keyboard.press("Enter")
    first = page.locator("#list-plain .pick").first
    expect(first).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(page.locator("#list-plain .pick").nth(2)).to_be_focused()
    page.keyboard.press("End")
    expect(page.locator("#list-plain .pick").last).to_be_focused()
    page.keyboard.press("Home")
    expect(first).to_be_focused()
    page.keyboard.press("ArrowDown")
    chosen = shown.ids("plain")[1]
    with shown.answered():
        page.keyboard.press("Enter")
    assert shown.ids("shape") == moons.query(chosen, top=20).ids
    expect(page.locator("#list-plain .pick").nth(1)).to_be_focused()  # one goes on where one was
    with shown.answered():
        page.keyboard.press("u")
    assert shown.query() == ["17"]


def test_dialogs_are_left_by_escape_and_give_the_focus_back(shown, page):
    shown.open()
    for name, dialog in (("help", "help-dialog"), ("open-vector", "vector-dialog")):
        shown[name].focus()
        page.keyboard.press("Enter")
        expect(shown[dialog]).to_be_visible()
        page.keyboard.press("Escape")
        expect(shown[dialog]).to_be_hidden()
        expect(shown[name]).to_be_focused()
    page.keyboard.press("?")
    expect(shown["help-dialog"]).to_be_visible()
    page.get_by_role("button", name="Close", exact=True).click()
    expect(shown["help-dialog"]).to_be_hidden()


def test_letters_typed_into_a_field_are_no_commands(shown, page):
    shown.open()
    shown["ask-id"].focus()
    page.keyboard.type("v?ua/")
    expect(shown["ask-id"]).to_have_value("v?ua/")
    expect(shown["vector-dialog"]).to_be_hidden()
    expect(shown["help-dialog"]).to_be_hidden()


def test_arrows_go_through_pictures_line_by_line(shown, page):
    shown.open("#digits?ids=5")
    rows = page.locator("#list-shape .pick")
    rows.first.focus()
    page.keyboard.press("ArrowDown")
    boxes = [row.bounding_box() for row in rows.all()]
    below = next(at for at, box in enumerate(boxes) if box["y"] > boxes[0]["y"] + 5)
    expect(rows.nth(below)).to_be_focused()
    page.keyboard.press("ArrowLeft")
    expect(rows.nth(below - 1)).to_be_focused()

"""Use without a mouse, names for screen readers, themes, and text that can be read."""

import json
import re

import pytest
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


CONTROLS = "button|link|textbox|searchbox|slider|combobox|checkbox|radio|spinbutton|dialog"
NAMELESS = re.compile(rf"^\s*- (?:{CONTROLS})(?! \")", re.MULTILINE)


def check_names(page):
    said = page.locator("body").aria_snapshot()
    assert NAMELESS.findall(said) == [], said
    assert (
        page.evaluate("() => [...document.images].filter(one => !one.hasAttribute('alt')).length")
        == 0
    )
    ids = page.evaluate("() => [...document.querySelectorAll('[id]')].map(one => one.id)")
    assert len(ids) == len(set(ids))
    return said


@pytest.mark.parametrize("link", ["#two-moons?ids=17,3&not=200&k=6", "#digits?ids=5"])
def test_every_control_has_a_name(shown, page, link):
    shown.open(link)
    shown["more"].locator("summary").click()
    shown.reach("shape", shown.ids("shape")[0]).get_by_test_id("mark-right").click()
    said = check_names(page)
    for words in ('slider "Neighbours"', 'slider "Smoothness"', 'combobox "Method"', "Rank 1, id"):
        assert words in said


def test_dialogs_have_names(shown, page):
    shown.open()
    for name, title in (("help", "What you see"), ("open-vector", "Ask with a vector")):
        shown[name].click()
        assert f'dialog "{title}"' in check_names(page)
        page.keyboard.press("Escape")


def test_the_page_has_an_outline(shown, page):
    shown.open()
    assert page.locator("h1").all_inner_texts() == ["rankfold"]
    assert page.evaluate("() => document.documentElement.lang") == "en-GB"
    for role in ("main", "navigation", "complementary", "banner"):
        assert page.get_by_role(role).count() == 1


def test_a_control_without_a_name_is_noticed(shown, page):
    shown.open()
    page.evaluate("() => document.body.append(document.createElement('button'))")
    with pytest.raises(AssertionError):
        check_names(page)


def test_answers_are_announced(shown):
    shown.open("#two-moons?ids=17")
    first = ", ".join(map(str, shown.ids("shape")[:3]))
    said = shown["live"].inner_text()
    assert said.startswith(f"First by shape: {first}.")
    assert "of 20 share moon" in said


UNREADABLE = """() => {
    const numbers = text => (text.match(/-?[\\d.]+(e-?\\d+)?/g) ?? []).map(Number);
    const rgba = text => {
        const given = numbers(text.replace(/^color\\(srgb/, ''));
        const bytes = text.startsWith('color(') ? given.map((v, i) => i < 3 ? 255 * v : v) : given;
        return [bytes[0], bytes[1], bytes[2], bytes[3] ?? 1];
    };
    const over = (above, below) =>
        [0, 1, 2].map(i => above[3] * above[i] + (1 - above[3]) * below[i]);
    const luminance = rgb => {
        const bent = v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
        const linear = rgb.map(v => bent(v / 255));
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
    };
    const ground = element => {
        const layers = [];
        for (let at = element; at; at = at.parentElement) {
            layers.push(rgba(getComputedStyle(at).backgroundColor));
            if (layers.at(-1)[3] === 1) break;
        }
        return layers.reduceRight((below, above) => over(above, below), [255, 255, 255]);
    };
    const opacity = element => {
        let all = 1;
        for (let at = element; at; at = at.parentElement) all *= getComputedStyle(at).opacity;
        return all;
    };
    const found = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const element = walker.currentNode.parentElement, text = walker.currentNode.data.trim();
        if (!text || element.closest('script, style, option, .hidden, :disabled')) continue;
        if (!element.checkVisibility({ visibilityProperty: true })) continue;
        const style = getComputedStyle(element), below = ground(element);
        const colour = rgba(style.color);
        colour[3] *= opacity(element);
        const [a, b] = [luminance(over(colour, below)), luminance(below)];
        const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        const size = parseFloat(style.fontSize), bold = Number(style.fontWeight) >= 700;
        const needed = size >= 24 || (bold && size >= 18.66) ? 3 : 4.5;
        if (ratio < needed) found.push({ text, ratio, colour: style.color, ground: below, size });
    }
    return found;
}"""
"""Text with too little contrast, as WCAG 2 defines it, level AA."""


def theme(page):
    return page.evaluate("() => document.documentElement.dataset.theme")


def ground(page):
    return page.evaluate("() => getComputedStyle(document.documentElement).backgroundColor")


def test_the_theme_is_switched_and_kept(shown, page):
    page.emulate_media(color_scheme="dark")
    shown.open()
    assert theme(page) == "dark"
    dark = ground(page)
    shown["theme"].click()
    assert theme(page) == "light"
    assert ground(page) != dark
    expect(shown["theme"]).to_have_attribute("aria-label", "Theme: light. Change to dark.")
    page.reload()
    shown.wait(0)
    assert theme(page) == "light"
    shown["theme"].click()
    page.emulate_media(color_scheme="light")
    assert theme(page) == "dark"
    shown["theme"].click()
    assert theme(page) == "light"  # as the system is
    page.emulate_media(color_scheme="dark")
    page.wait_for_function("() => document.documentElement.dataset.theme === 'dark'")
    assert ground(page) == dark


@pytest.mark.parametrize("colours", ["light", "dark"])
def test_text_stands_out(shown, page, watch, colours):
    page.emulate_media(color_scheme=colours)
    shown.open("#two-moons?not=200&k=6")
    shown["more"].locator("summary").click()
    shown["where"].fill("nonsense")
    page.keyboard.press("Enter")
    expect(shown["where-error"]).not_to_have_text("")
    watch.expect("status of 422")
    first, second = shown.ids("shape")[:2]
    shown.reach("shape", first).get_by_test_id("mark-right").click()
    shown.reach("shape", second).get_by_test_id("mark-wrong").click()
    page.mouse.move(1, 1)
    shown.reach("shape", shown.ids("shape")[5]).locator(".pick").focus()
    expect(shown["why-text"]).to_be_attached()
    shown["why"].locator("summary").click()
    assert page.evaluate(UNREADABLE) == []
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    expect(shown["help-dialog"]).to_be_visible()
    assert page.evaluate(UNREADABLE) == []


@pytest.mark.parametrize("colours", ["light", "dark"])
def test_text_of_pictures_and_messages_stands_out(shown, page, colours):
    page.emulate_media(color_scheme=colours)
    shown.open("#digits?ids=5")
    page.evaluate(
        """() => {
            const given = new DataTransfer();
            given.items.add(new File(['1 2 3'], 'x.txt'));
            document.body.dispatchEvent(new DragEvent('drop', {
                dataTransfer: given, bubbles: true, cancelable: true }));
        }"""
    )
    expect(shown["notice"]).to_be_visible()
    shown["open-vector"].click()
    shown["vector-text"].fill("1")
    shown["vector-ask"].click()
    expect(shown["vector-error"]).not_to_have_text("")
    assert page.evaluate(UNREADABLE) == []


def test_what_cannot_be_read_is_noticed(page):
    page.set_content("<p style='color: #999; background: #fff'>pale</p><p>fine</p>")
    found = page.evaluate(UNREADABLE)
    assert [one["text"] for one in found] == ["pale"], json.dumps(found)

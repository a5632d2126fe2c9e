"""Light and dark: kept, followed, and readable."""

import json

import pytest
from browser.contrast import UNREADABLE
from playwright.sync_api import expect


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

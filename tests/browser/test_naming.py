"""What the page is called to those who listen to it."""

import re

import pytest

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

"""Those who do not wait: what is done while an answer is on its way."""

import json

import pytest
from playwright.sync_api import expect
from running_service import running

from rankfold.service.app import create_app


@pytest.fixture(scope="module")
def served():
    with running(create_app({})) as client:
        yield str(client.base_url)


@pytest.fixture
def address(served):
    return served


class Held:
    """Answers to some requests, kept back until they are let go."""

    def __init__(self, page, pattern):
        self.page, self.routes = page, []
        page.route(pattern, lambda route: self.routes.append(route))

    def wait(self, count=1):
        while len(self.routes) < count:
            self.page.wait_for_timeout(10)

    def let_go(self, which=0):
        self.routes[which].continue_()


def test_a_slider_moved_while_an_index_loads_does_not_stop_it(shown, page, examples):
    shown.open("#two-moons?ids=17")
    held = Held(page, "**/three-rings/map*")
    shown["tab"].nth(1).click()
    held.wait()
    assert page.evaluate("() => document.getElementById('layout').inert")
    slide = "slider => { slider.value = 9; slider.dispatchEvent(new Event('input')); }"
    shown["slider-k"].evaluate(slide)
    with shown.answered():
        held.let_go()
    assert not page.evaluate("() => document.getElementById('layout').inert")
    point = json.loads(shown.link.split("ids=")[1].split("&")[0])
    assert set(shown.ids("shape")) <= set(examples["three-rings"].ids)
    assert point in examples["three-rings"].ids
    expect(page.locator("nav [aria-current]")).to_have_text("Three rings")
    shown["tab"].first.click()
    expect(shown["lead"]).to_contain_text("the same 400 points")


def test_the_index_before_is_open_to_use_when_another_does_not_load(shown, page, watch, moons):
    shown.open("#two-moons?ids=17")
    page.route("**/three-rings/map*", lambda route: route.abort())
    shown["tab"].nth(1).click()
    expect(shown["notice-text"]).to_contain_text("The server does not answer.")
    with shown.answered():
        shown["tab"].first.click()
    with shown.answered():
        shown["ask-id"].fill("3")
        shown["ask"].click()
    assert shown.ids("shape") == moons.query(3, top=20).ids
    watch.expect("three-rings/map|ERR_FAILED")


def test_a_point_is_explained_though_the_next_answer_fails(shown, page, watch):
    shown.open("#two-moons?ids=17")
    held = Held(page, "**/query")
    shown["ask-id"].fill("3")
    shown["ask"].click()
    held.wait()
    point = shown.ids("shape")[0]
    shown.row("shape", point).locator(".pick").focus()
    expect(shown["why-path"]).to_have_text("Looking for the path …")
    page.wait_for_timeout(300)  # longer than the page waits before it asks
    held.routes[0].abort()
    expect(shown["why-text"]).to_contain_text(f"Why is {point} here?")
    watch.expect("query|ERR_FAILED")

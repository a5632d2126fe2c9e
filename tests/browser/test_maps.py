"""The maps: colours, and moving around on them."""

import numpy as np
import pytest
from browser.page_view import chroma
from playwright.sync_api import expect

QUERY = 17
SIDES = ("plain", "shape")


@pytest.fixture
def unreached(moons):
    """Points that the shape does not connect to the query: the other moon."""
    answer = moons.query(QUERY, top=len(moons))
    points = [name for name, score in zip(answer.ids, answer.scores, strict=True) if score == 0]
    own = moons.payload([QUERY])["moon"][0]
    assert len(points) > 150
    assert own not in moons.payload(points)["moon"]
    return points


def check_colours(shown, moons, unreached):
    own = [point for point in moons.ids if point not in unreached]
    assert np.median(chroma(shown.colours("plain", unreached, moons))) > 60
    assert np.median(chroma(shown.colours("plain", own, moons))) > 60
    assert np.percentile(chroma(shown.colours("shape", unreached, moons)), 90) < 30
    assert np.median(chroma(shown.colours("shape", own, moons))) > 60


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_other_moon_is_grey_by_shape_and_coloured_by_distance(
    shown, page, moons, unreached, theme
):
    page.emulate_media(color_scheme=theme)
    shown.open(f"#two-moons?ids={QUERY}")
    expect(shown["map-plain"]).to_have_attribute("data-renderer", "webgl2")
    check_colours(shown, moons, unreached)


def test_without_webgl_points_are_drawn_all_the_same(shown, page, moons, unreached):
    page.add_init_script(
        """const real = HTMLCanvasElement.prototype.getContext;
        HTMLCanvasElement.prototype.getContext = function (kind, ...rest) {
            return kind.startsWith('webgl') ? null : real.call(this, kind, ...rest);
        };"""
    )
    shown.open(f"#two-moons?ids={QUERY}")
    expect(shown["map-shape"]).to_have_attribute("data-renderer", "canvas")
    check_colours(shown, moons, unreached)


def test_colours_that_flow_end_where_they_should(shown, page, moons, unreached):
    page.emulate_media(reduced_motion="no-preference")
    shown.open(f"#two-moons?ids={unreached[0]}")
    shown.click("plain", shown.pixel_of("plain", QUERY, moons))
    before, after = None, shown.picture("shape")
    while before is None or np.any(before != after):
        before, after = after, shown.picture("shape")
    check_colours(shown, moons, unreached)


def test_points_are_coloured_by_their_moon(shown, moons):
    shown.open(f"#two-moons?ids={QUERY}")
    shown["colouring"].select_option("column")
    expect(shown["legend"]).to_contain_text("moon:")
    labels = np.array(moons.payload(moons.ids)["moon"])
    for side in SIDES:
        colours = shown.colours(side, moons.ids, moons)
        kinds = [np.median(colours[labels == label], axis=0) for label in (0, 1)]
        assert np.abs(kinds[0] - kinds[1]).max() > 80
    assert "colour=column" in shown.link
    shown["colouring"].select_option("rank")
    expect(shown["legend"]).to_contain_text("first")


def difference(shown):
    """Return the share of pixels in which the maps differ; both have the same colours."""
    plain, shape = (shown.picture(side)[4:-4, 4:-4] for side in SIDES)
    width = min(plain.shape[1], shape.shape[1])
    return np.mean(np.any(np.abs(plain[:, :width] - shape[:, :width]) > 60, axis=-1))


@pytest.mark.parametrize("side", SIDES)
def test_zoom_and_drag_keep_both_maps_in_step(shown, page, moons, side):
    shown.open("#two-moons?ids=17&method=distance&colour=column")
    whole = shown.picture("plain")
    assert difference(shown) < 0.01
    expect(shown["fit"]).to_be_hidden()
    box = shown[f"map-{side}"].bounding_box()
    x, y = shown.pixel_of(side, QUERY, moons)
    page.mouse.move(box["x"] + x, box["y"] + y)
    page.mouse.wheel(0, -400)
    expect(shown["map-plain"]).to_have_attribute("data-zoomed", "true")
    expect(shown["map-shape"]).to_have_attribute("data-zoomed", "true")
    zoomed = shown.picture("plain")
    assert np.any(zoomed != whole)
    assert difference(shown) < 0.01
    answers = shown.answers
    page.mouse.move(box["x"] + 200, box["y"] + 120)
    page.mouse.down()
    page.mouse.move(box["x"] + 150, box["y"] + 100, steps=4)
    page.mouse.up()
    dragged = shown.picture("plain")
    assert np.any(dragged != zoomed)
    assert difference(shown) < 0.01
    assert shown.answers == answers  # a drag is no click
    shown["fit"].click()
    expect(shown["fit"]).to_be_hidden()
    assert np.mean(np.any(shown.picture("plain") != whole, axis=-1)) < 0.001


def test_a_click_on_a_zoomed_map_takes_the_point_under_it(shown, page, moons):
    shown.open("#two-moons?ids=3")
    box = shown["map-plain"].bounding_box()
    x, y = shown.pixel_of("plain", QUERY, moons)
    page.mouse.move(box["x"] + x, box["y"] + y)
    page.mouse.wheel(0, -240)
    shown.click("plain", (x, y))
    assert shown.query() == [str(QUERY)]


def test_keys_move_a_map(shown, page):
    shown.open(f"#two-moons?ids={QUERY}")
    whole = shown.picture("shape")
    shown["map-plain"].focus()
    pictures = []
    for key in ("+", "+", "ArrowLeft", "ArrowUp", "ArrowRight", "-"):
        page.keyboard.press(key)
        pictures.append(shown.picture("shape"))
    for before, after in zip([whole, *pictures], pictures, strict=False):
        assert np.any(before != after)
    page.keyboard.press("0")
    expect(shown["map-shape"]).to_have_attribute("data-zoomed", "false")
    assert np.mean(np.any(shown.picture("shape") != whole, axis=-1)) < 0.001


def test_the_page_can_be_scrolled_past_the_maps(shown, page):
    shown.open("#digits")
    page.set_viewport_size({"width": 800, "height": 500})
    shown["map-plain"].hover()
    page.mouse.wheel(0, 300)
    page.wait_for_function("() => scrollY > 100")
    expect(shown["map-plain"]).to_have_attribute("data-zoomed", "false")

"""Queries: points, places on the map, vectors, and results marked as right or wrong."""

import base64
import io

import numpy as np
import pytest
from browser.page_view import lone
from PIL import Image
from playwright.sync_api import expect

QUERY = 17


def answers(index, **query):
    return [index.query(**query, top=20, method=method).ids for method in ("distance", "ran")]


def lists(shown):
    return [shown.ids("plain"), shown.ids("shape")]


@pytest.mark.parametrize("side", ["plain", "shape"])
def test_a_click_on_a_point_asks_with_it(shown, moons, side):
    shown.open()
    before = lists(shown)
    [point] = lone(moons, 1)
    shown.click(side, shown.pixel_of(side, point, moons))
    assert shown.query() == [str(point)]
    assert lists(shown) == answers(moons, ids=point)
    assert lists(shown) != before
    assert shown.link == f"#two-moons?ids={point}"


@pytest.mark.parametrize("key", ["Shift", "Alt"])
def test_a_click_with_a_key_adds_an_example(shown, moons, key):
    shown.open("#two-moons?ids=17")
    [point] = lone(moons, 1)
    shown.click("plain", shown.pixel_of("plain", point, moons), modifiers=[key])
    assert shown.query() == ["17", str(point)]
    assert lists(shown) == answers(moons, ids=[17, point])


def test_a_click_on_an_empty_place_asks_with_a_vector(shown, moons):
    shown.open()
    _, places = moons.places()
    place = places.min(axis=0) + np.array([0.05, 0.05])  # a corner, far from both moons
    shown.click("shape", shown.pixels("shape", place, moons).tolist())
    asked = np.array(shown.link.partition("vectors=")[2].split(","), float)
    corner = moons.vectors(moons.ids).min(axis=0)
    reach = np.ptp(moons.vectors(moons.ids), axis=0)
    assert np.all(np.abs((asked - corner) / reach) < 0.06)
    assert lists(shown) == answers(moons, vectors=asked)
    expect(shown["example"]).to_have_text(f"({asked[0]:.2f}, {asked[1]:.2f})")
    expect(shown["caption-shape"]).to_have_text("")  # a vector has no moon of its own


def test_examples_are_taken_away_and_undone(shown, moons, page):
    shown.open("#two-moons?ids=17,3")
    with shown.answered():
        page.get_by_role("button", name="Remove 17").click()
    assert lists(shown) == answers(moons, ids=3)
    expect(page.get_by_role("button", name="Remove 3")).to_have_count(0)  # a query has an example
    with shown.answered():
        shown["undo"].click()
    assert shown.query() == ["17", "3"]
    assert lists(shown) == answers(moons, ids=[17, 3])


def test_a_result_is_asked_with(shown, moons):
    shown.open("#two-moons?ids=17")
    chosen = shown.ids("plain")[6]
    with shown.answered():
        shown.reach("plain", chosen).locator(".pick").click()
    assert lists(shown) == answers(moons, ids=chosen)
    another = shown.ids("shape")[2]
    with shown.answered():
        shown.reach("shape", another).locator(".pick").click(modifiers=["Shift"])
    assert lists(shown) == answers(moons, ids=[chosen, another])


def test_an_id_is_typed(shown, moons, page):
    shown.open()
    page.keyboard.press("/")
    expect(shown["ask-id"]).to_be_focused()
    with shown.answered():
        page.keyboard.type("250\n")
    assert lists(shown) == answers(moons, ids=250)


def test_an_unknown_id_is_said_at_the_field(shown, watch):
    shown.open()
    before = lists(shown)
    shown["ask-id"].fill("nobody")
    shown["ask"].click()
    expect(shown["query-error"]).to_contain_text("nobody")
    expect(shown["ask-id"]).to_have_attribute("aria-invalid", "true")
    assert lists(shown) == before
    watch.expect("status of 4")
    with shown.answered():
        shown["ask-id"].fill("5")
        shown["ask"].click()
    expect(shown["query-error"]).to_have_text("")


def test_back_goes_through_queries(shown, moons, page):
    shown.open("#two-moons?ids=17")
    first, second = lone(moons, 2)
    shown.click("plain", shown.pixel_of("plain", first, moons))
    shown.click("plain", shown.pixel_of("plain", second, moons))
    for query in (first, 17):
        with shown.answered():
            page.go_back()
        assert lists(shown) == answers(moons, ids=query)
    with shown.answered():
        page.go_forward()
    assert shown.query() == [str(first)]


def test_digits_are_asked_with_by_a_click(shown, numerals):
    shown.open("#digits")
    [point] = lone(numerals, 1)
    shown.click("shape", shown.pixel_of("shape", point, numerals))
    assert shown.query() == [str(point)]
    assert lists(shown) == answers(numerals, ids=point)


DROP = """([name, kind, content]) => {
    const bytes = Uint8Array.from(atob(content), letter => letter.charCodeAt(0));
    const given = new DataTransfer();
    given.items.add(new File([bytes], name, {type: kind}));
    for (const event of ['dragenter', 'dragover', 'drop']) {
        document.body.dispatchEvent(new DragEvent(event, {
            dataTransfer: given, bubbles: true, cancelable: true,
        }));
    }
}"""
PASTE = """text => {
    const given = new DataTransfer();
    given.setData('text', text);
    document.body.dispatchEvent(new ClipboardEvent('paste', {clipboardData: given, bubbles: true}));
}"""


def drop(page, name, content, kind=""):
    page.evaluate(DROP, [name, kind, base64.b64encode(content).decode()])


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def test_npy_files_are_dropped(shown, page, moons):
    shown.open()
    rows = [[0.4, 0.3], [1.5, -0.25]]
    for array in (
        np.array([0.4, 0.3], np.float32),
        np.array(rows),
        np.asfortranarray(rows, dtype=">f8"),
        np.array([1, 0], np.int64),
        np.array([1, 0], np.uint8),
    ):
        with shown.answered():
            drop(page, "vector.npy", npy(array))
        assert lists(shown) == answers(moons, vectors=array.astype(float).tolist())
        expect(shown["drop"]).to_be_hidden()
        expect(shown["example"]).to_have_count(len(np.atleast_2d(array)))


def test_something_is_seen_while_a_file_is_held_over_the_page(shown, page):
    shown.open()
    page.evaluate(
        """() => {
            const given = new DataTransfer();
            given.items.add(new File(['1'], 'x.txt'));
            for (const event of ['dragenter', 'dragover']) {
                document.body.dispatchEvent(new DragEvent(event, {
                    dataTransfer: given, bubbles: true, cancelable: true }));
            }
        }"""
    )
    expect(shown["drop"]).to_be_visible()
    page.evaluate(
        """() => {
            const given = new DataTransfer();
            given.items.add(new File(['1'], 'x.txt'));
            document.body.dispatchEvent(new DragEvent('dragleave', {
                dataTransfer: given, bubbles: true }));
        }"""
    )
    expect(shown["drop"]).to_be_hidden()


WRONG = [
    ("wide.npy", npy(np.zeros(3)), "This vector has 3 numbers; the points here have 2."),
    ("words.npy", npy(np.array(["a", "b"])), "no plain array of numbers"),
    ("half.npy", npy(np.zeros(2, np.float16)), "numbers of kind f2"),
    ("short.npy", npy(np.zeros(2))[:-4], "The file ends too early."),
    ("other.npy", b"not an array, just text", "This is not an .npy file."),
    ("nan.npy", npy(np.array([0, np.nan])), "not finite"),
    ("deep.npy", npy(np.zeros((1, 1, 2))), "The array has 3 dimensions"),
    ("many.npy", npy(np.zeros((21, 2))), "21 vectors are too many"),
    ("notes.txt", b"one two", "is not a number"),
    ("list.json", b'["a", 1]', "must be a list of numbers"),
    ("film.mp4", b"....", "film.mp4 cannot be read"),
    ("large.csv", b"1" * (8 * 2**20 + 1), "larger than 8 MiB"),
]


def test_what_cannot_be_asked_with_is_said(shown, page):
    shown.open()
    before = lists(shown)
    for name, content, words in WRONG:
        drop(page, name, content)
        expect(shown["notice-text"]).to_contain_text(words)
        assert lists(shown) == before
        shown["notice-close"].click()
        expect(shown["notice"]).to_be_hidden()


def test_numbers_are_typed(shown, page, moons):
    shown.open()
    for text in ("0.4, 0.3", "0.4 0.3", "[0.4, 0.3]", "x,y\n0.4,0.3", "0.4\n0.3"):
        page.keyboard.press("v")
        expect(shown["vector-text"]).to_be_focused()
        shown["vector-text"].fill(text)
        with shown.answered():
            shown["vector-ask"].click()
        expect(shown["vector-dialog"]).to_be_hidden()
        assert lists(shown) == answers(moons, vectors=[0.4, 0.3])
        assert shown.link == "#two-moons?vectors=0.4,0.3"


def test_numbers_are_pasted(shown, page, moons):
    shown.open()
    page.evaluate(PASTE, "0.4, 0.3")
    expect(shown["vector-text"]).to_have_value("0.4, 0.3")
    with shown.answered():
        shown["vector-ask"].click()
    assert lists(shown) == answers(moons, vectors=[0.4, 0.3])


def test_a_wrong_width_is_said_in_the_dialog(shown, page):
    shown.open()
    shown["open-vector"].click()
    shown["vector-text"].fill("1, 2, 3")
    shown["vector-ask"].click()
    expect(shown["vector-error"]).to_have_text("This vector has 3 numbers; the points here have 2.")
    expect(shown["vector-dialog"]).to_be_visible()
    shown["vector-text"].fill("1, 2")
    expect(shown["vector-error"]).to_have_text("")
    page.keyboard.press("Escape")
    expect(shown["vector-dialog"]).to_be_hidden()


def test_a_file_is_chosen(shown, moons):
    shown.open()
    shown["open-vector"].click()
    shown["vector-file"].set_input_files(
        {"name": "v.npy", "mimeType": "", "buffer": npy(np.array([0.4, 0.3]))}
    )
    with shown.answered():
        shown["vector-ask"].click()
    assert lists(shown) == answers(moons, vectors=[0.4, 0.3])


def test_a_picture_is_dropped_on_digits(shown, page, numerals):
    pixels = np.rint(numerals.vectors([42])[0].reshape(8, 8) * 255 / 16).astype(np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "png")
    shown.open("#digits")
    with shown.answered():
        drop(page, "digit.png", file.getvalue(), "image/png")
    assert lists(shown) == answers(numerals, vectors=pixels.ravel() / 255 * 16)
    assert shown.ids("plain")[0] == 42
    expect(shown["example"]).to_have_text("vector of 64")


def test_a_picture_cannot_be_dropped_on_moons(shown, page):
    shown.open()
    drop(page, "digit.png", b"", "image/png")
    expect(shown["notice-text"]).to_contain_text("are not pictures; give numbers")


def test_a_long_vector_is_back_after_reloading(shown, page, numerals):
    shown.open("#digits?ids=3")
    with shown.answered():
        drop(page, "two.npy", npy(numerals.vectors([42, 43])))
    before = lists(shown)
    page.reload()
    shown.wait(0)
    assert lists(shown) == before


def test_a_vector_that_is_too_long_for_the_link_is_said_to_be_left_out(shown):
    shown.open("#digits?ids=5")
    expect(shown["unlinked"]).to_be_hidden()
    for count in (1, 2):
        shown["open-vector"].click()
        shown["vector-text"].fill("\n".join([", ".join(["3"] * 64)] * count))
        with shown.answered():
            shown["vector-ask"].click()
        assert ("vectors=" in shown.link) == (count == 1)
        expect(shown["unlinked"]).to_be_visible(visible=count == 2)


def refined(index, method, right, wrong):
    return index.query(QUERY, top=20, method=method).refine(right=right, wrong=wrong).ids


def mark_by_mouse(shown, point, mark):
    shown.reach("shape", point).get_by_test_id(f"mark-{mark}").click()


def mark_by_keys(shown, point, mark):
    shown.row("shape", point).locator(".pick").focus()
    shown.page.keyboard.press(mark[0])


@pytest.mark.parametrize("mark", [mark_by_mouse, mark_by_keys])
def test_marks_change_the_answer_as_refine_does(shown, page, moons, mark):
    shown.open(f"#two-moons?ids={QUERY}")
    right, wrong = shown.ids("shape")[12], shown.ids("shape")[1]
    expect(shown["feedback"]).to_be_hidden()
    mark(shown, right, "right")
    mark(shown, wrong, "wrong")
    expect(shown["marked"]).to_have_text("1 right, 1 wrong")
    pressed = page.locator("#list-shape [aria-pressed=true]")
    assert {one.get_attribute("aria-label") for one in pressed.all()} == {
        f"Mark {right} as right",
        f"Mark {wrong} as wrong",
    }
    with shown.answered(), page.expect_request("**/query") as sent:
        if mark is mark_by_mouse:
            shown["ask-again"].click()
        else:
            page.keyboard.press("a")
    for query in sent.value.post_data_json["queries"]:
        assert (query["ids"], query["negative"]) == ([QUERY, right], [wrong])
    assert shown.ids("plain") == refined(moons, "distance", right, wrong)
    assert shown.ids("shape") == refined(moons, "ran", right, wrong)
    assert shown.query() == [str(QUERY), str(right), f"✗ not {wrong}"]
    expect(shown["feedback"]).to_be_hidden()


def test_marks_are_taken_back(shown):
    shown.open(f"#two-moons?ids={QUERY}")
    first, second, third = shown.ids("shape")[:3]
    mark_by_mouse(shown, first, "right")
    mark_by_mouse(shown, first, "wrong")
    expect(shown["marked"]).to_have_text("0 right, 1 wrong")
    mark_by_mouse(shown, first, "wrong")
    expect(shown["feedback"]).to_be_hidden()
    mark_by_mouse(shown, second, "right")
    mark_by_mouse(shown, third, "right")
    expect(shown["marked"]).to_have_text("2 right, 0 wrong")
    answers = shown.answers
    shown["clear-marks"].click()
    expect(shown["feedback"]).to_be_hidden()
    expect(shown.page.locator("#list-shape [aria-pressed=true]")).to_have_count(0)
    assert shown.answers == answers


def test_marks_outlast_a_slider_but_not_another_query(shown):
    shown.open(f"#two-moons?ids={QUERY}")
    point = shown.ids("shape")[0]
    mark_by_mouse(shown, point, "right")
    with shown.answered():
        shown["slider-smoothness"].press("ArrowRight")
    expect(shown["marked"]).to_have_text("1 right, 0 wrong")
    with shown.answered():
        shown.reach("shape", point).locator(".pick").click()
    expect(shown["feedback"]).to_be_hidden()


def test_a_negative_example_is_taken_away(shown, page, moons):
    shown.open(f"#two-moons?ids={QUERY}&not=200")
    assert shown.ids("shape") == moons.query(QUERY, negative=200, top=20).ids
    with shown.answered():
        page.get_by_role("button", name="Remove ✗ not 200").click()
    assert shown.ids("shape") == moons.query(QUERY, top=20).ids


def test_marks_are_drawn_on_the_maps(shown):
    shown.open(f"#two-moons?ids={QUERY}")
    point = shown.ids("shape")[9]
    shown.reach("shape", point)
    before = shown.picture("plain")
    mark_by_mouse(shown, point, "wrong")
    assert (shown.picture("plain") != before).any()


def test_card_and_list_agree_on_places_after_marks(shown):
    shown.open("#two-moons?ids=1&not=5,6")
    for rank, point in enumerate(shown.ids("shape")[:6], 1):
        shown.row("shape", point).locator(".pick").focus()
        expect(shown["why-text"]).to_contain_text(f"Why is {point} here?")
        (row,) = [row for row in shown.rows("shape") if row["id"] == point]
        expect(shown["why-places"].locator("b").last).to_have_text(str(rank))
        expect(shown["why-places"].locator(".move")).to_have_text(row["move"])

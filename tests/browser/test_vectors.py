"""Asking with a vector that is not in the index: numbers, files, pictures."""

import base64
import io

import numpy as np
from PIL import Image
from playwright.sync_api import expect

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


def lists(shown):
    return [shown.ids("plain"), shown.ids("shape")]


def answers(index, vectors):
    methods = ("distance", "ran")
    return [index.query(vectors=vectors, top=20, method=method).ids for method in methods]


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
        assert lists(shown) == answers(moons, array.astype(float))
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
        assert lists(shown) == answers(moons, [0.4, 0.3])
        assert shown.link == "#two-moons?vectors=0.4,0.3"


def test_numbers_are_pasted(shown, page, moons):
    shown.open()
    page.evaluate(PASTE, "0.4, 0.3")
    expect(shown["vector-text"]).to_have_value("0.4, 0.3")
    with shown.answered():
        shown["vector-ask"].click()
    assert lists(shown) == answers(moons, [0.4, 0.3])


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
    assert lists(shown) == answers(moons, [0.4, 0.3])


def test_a_picture_is_dropped_on_digits(shown, page, numerals):
    pixels = np.rint(numerals.vectors([42])[0].reshape(8, 8) * 255 / 16).astype(np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "png")
    shown.open("#digits")
    with shown.answered():
        drop(page, "digit.png", file.getvalue(), "image/png")
    assert lists(shown) == answers(numerals, pixels.ravel() / 255 * 16)
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

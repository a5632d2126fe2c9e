"""Typing in the search box: ids, words that points hold, and texts to ask with."""

import pytest
from serving import serving

from rankfold import Index

NOTES = {
    "chess": "A chess engine analyses positions on the board",
    "gimp": "Edit images: layers and undo steps",
    "go": "A board game from China played with stones",
    "krita": "A painting program for artists with brushes",
    "mail": "Read your mail in a terminal",
    "inkscape": "Vector drawing editor for pictures",
}


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    """A service over notes that can be asked in words, and over the same without an embedder."""
    pytest.importorskip("wordllama")
    folder = tmp_path_factory.mktemp("words")
    ids, texts = list(NOTES), list(NOTES.values())
    with Index.build(texts=texts, ids=ids, embedder="wordllama", path=folder / "notes") as index:
        X = index.vectors(ids)
    payload = {"body": texts}
    Index.build(X, ids, payload, metric="cosine", path=folder / "plain").close()
    with serving(folder / "notes", folder / "plain") as service:
        yield service


@pytest.fixture
def address(words):
    return words.address


def suggestions(shown):
    shown["suggestion"].first.wait_for()
    return shown.page.locator("#suggestions li b").all_text_contents()


def test_typing_finds_points_by_their_words(shown):
    shown.open("#notes")
    shown["ask-id"].press_sequentially("board gam")
    assert suggestions(shown) == ["go", "chess"]
    shown["ask-id"].press("ArrowDown")
    assert shown["ask-id"].get_attribute("aria-activedescendant") == "suggestion-0"
    shown["ask-id"].press("ArrowDown")
    with shown.answered():
        shown["ask-id"].press("Enter")
    assert shown.link == "#notes?ids=chess"
    assert shown["suggestions"].is_hidden()


def test_ids_are_completed(shown):
    shown.open("#plain")
    shown["ask-id"].press_sequentially("g")
    assert suggestions(shown)[:2] == ["gimp", "go"]
    shown["ask-id"].press("Escape")
    assert shown["suggestions"].is_hidden()
    shown["ask-id"].press_sequentially("i")
    with shown.answered():
        shown["suggestion"].first.click()
    assert shown.link == "#plain?ids=gimp"


def test_a_text_is_asked_with(shown):
    shown.open("#notes")
    with shown.answered():
        shown["ask-id"].fill("undo in an image editor")
        shown["ask-id"].press("Enter")
    assert shown.ids("shape")[0] == "gimp"
    assert shown["example"].inner_text() == "“undo in an image editor”"
    assert shown.link == "#notes?text=undo%20in%20an%20image%20editor"
    row = shown.reach("shape", "gimp")
    row.hover()
    shown.page.locator("#why h2").first.wait_for()
    shown.open(shown.link)  # a link keeps the text
    assert shown.ids("shape")[0] == "gimp"
    with shown.answered():
        shown.row("plain", "go").locator(".pick").click()
    assert shown.link == "#notes?ids=go"


def test_without_an_embedder_the_first_that_holds_the_words_is_asked_with(shown):
    shown.open("#plain")
    with shown.answered():
        shown["ask-id"].fill("undo steps")
        shown["ask-id"].press("Enter")
    assert shown.link == "#plain?ids=gimp"


def test_words_that_nothing_holds_are_no_id(shown, watch):
    shown.open("#plain")
    shown["ask-id"].fill("quantum knitting")
    shown["ask-id"].press("Enter")
    shown["query-error"].filter(has_text="no points with the ids 'quantum knitting'").wait_for()
    watch.expect("422")


def test_suggestions_say_what_they_are_and_move_nothing(shown):
    shown.open("#plain")
    below = shown["ask"].bounding_box()
    shown["ask-id"].press_sequentially("g")
    suggestions(shown)
    texts = shown.page.locator("#suggestions li span").all_text_contents()
    assert texts[:2] == [NOTES["gimp"], NOTES["go"]]
    assert shown["ask"].bounding_box() == below


def test_lists_of_the_same_points_show_their_texts(shown):
    shown.open("#notes?text=stones")
    assert sorted(shown.ids("plain")) == sorted(shown.ids("shape")) == sorted(NOTES)
    rows = shown.page.locator("#list-shape .text").all_text_contents()
    assert rows == [NOTES[one] for one in shown.ids("shape")]


def test_what_is_typed_need_not_be_words(shown):
    shown.open("#notes")
    shown["ask-id"].press_sequentially("?!")
    shown.page.wait_for_load_state("networkidle")
    assert shown["suggestions"].is_hidden()


def test_what_is_found_fits_on_the_screen(shown):
    shown.open("#notes")
    shown["ask-id"].press_sequentially("board")
    suggestions(shown)
    wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert shown.page.evaluate(wide) == 0

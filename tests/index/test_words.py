"""Points found by words, asked for by texts, and both at once."""

import numpy as np
import pytest
from index_cases import backend_of

from rankfold import Index
from rankfold.errors import InputError
from rankfold.index.scores import list_depth
from rankfold.parallel import Stop, StoppedError
from rankfold.storage import Store

NOTES = [
    "A chess engine analyses positions on the board",
    "Edit images: layers and undo steps",
    "A board game from China played with stones",
    "A painting program for artists with brushes",
    "Read your mail in a terminal",
    "Vector drawing editor",
    "Ćafé and Überraschung",
]
YEARS = [2001, 2003, 1990, 2005, 1999, 2004, 2010]


def letters(texts):
    """Count the letters of texts: an embedder that anybody can follow."""
    alphabet = "abcdefghijklmnopqrstuvwxyz"
    return np.array([[1 + text.lower().count(one) for one in alphabet] for text in texts])


@pytest.fixture
def notes():
    payload = {"year": YEARS, "image": ["data:image/png;base64,chess"] * len(NOTES)}
    with Index.build(texts=NOTES, payload=payload, embedder=letters) as index:
        yield index


def test_words_are_found(notes):
    assert notes.info()["text_columns"] == ["text"]  # pictures are no words
    assert notes.find("CHESS").ids == [0]
    assert notes.find("cafe uberraschung").ids == [6]
    assert notes.find("board chess").ids == [0, 2]  # both words before one
    assert notes.find('"board game" mail').ids == [4, 2]  # the shorter text first
    assert notes.find("draw* edit*").ids == [5, 1]
    assert notes.find("board", where="year < 2000").ids == [2]
    assert notes.find("zebra").ids == []
    found = notes.find("a board", top=2, offset=1)
    assert found.ids == notes.find("a board").ids[1:3]
    assert found.rows()[0]["rank"] == 2
    assert found.columns()["text"] == [NOTES[place] for place in found.ids]
    assert repr(found).startswith("Matches(2 points, {")


def test_scores_are_those_of_bm25(notes):
    """Robertson's formula with k1 = 1.2 and b = 0.75, word by word."""
    found = notes.find("board stones")
    lengths = [len(text.split()) for text in NOTES]
    mean, n = np.mean(lengths), len(NOTES)
    for point, score in zip(found.ids, found.scores, strict=True):
        expected = 0.0
        for word in ("board", "stones"):
            holders = sum(word in text for text in NOTES)
            times = NOTES[point].count(word)
            rarity = np.log((n - holders + 0.5) / (holders + 0.5))
            length = 1.2 * (0.25 + 0.75 * lengths[point] / mean)
            expected += rarity * times * 2.2 / (times + length)
        assert score == pytest.approx(expected, rel=1e-9)


def test_words_follow_changes(notes, tmp_path):
    notes.update(0, texts=["a go engine"])
    notes.remove(2)
    (new,) = notes.add(texts=["chess for two"], payload={"year": [1]})
    assert notes.find("chess").ids == [new]
    notes.save(tmp_path / "notes")  # slots are others after a merge
    assert notes.find("chess").ids == [new]
    assert notes.find("go").ids == [0]
    assert notes.find("stones").ids == []
    with Store.open(tmp_path / "notes") as store:
        store.verify()
    with Index.open(tmp_path / "notes") as reader:
        notes.upsert(texts=["backgammon"], ids=[new])
        assert reader.find("chess").ids == []
        assert reader.find("backgammon").ids == [new]


def test_a_column_that_had_no_text_yet():
    with Index.build(np.eye(3), payload={"note": [None] * 3}) as index:
        with pytest.raises(InputError, match="of which the index has none"):
            index.find("chess")
        index.update(1, payload={"note": ["chess"]})
        assert index.find("chess").ids == [1]
        backend_of(index).store.verify()


@pytest.mark.parametrize(
    "words", ['"', "AND", "NEAR(a b)", "c0:chess", "(", "a OR", "{c0} : x", "-*"]
)
def test_no_language_of_the_database_is_understood(notes, words):
    if any(sign.isalnum() for sign in words):
        assert isinstance(notes.find(words).ids, list)
    else:
        with pytest.raises(InputError, match="holds no word"):
            notes.find(words)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"words": "a " * 101}, "101 words, but may be 100"),
        ({"words": "a" * 2001}, "2001 characters"),
        ({"words": 7}, "must be text"),
        ({"words": "a", "columns": ["year"]}, "'year' is none of them"),
        ({"words": "a", "top": 0}, "top is 0"),
        ({"words": "a", "where": "yea = 1"}, "no column 'yea'"),
    ],
)
def test_what_cannot_be_found(notes, given, message):
    with pytest.raises(InputError, match=message):
        notes.find(**given)


def test_a_search_for_words_can_be_stopped(tmp_path):
    n_points = 20_000
    arrays, texts = {"x": np.zeros((n_points, 1))}, ["a common word"] * n_points
    Store.create(tmp_path / "many", arrays, {}, range(n_points), {"note": texts})
    stop = Stop()
    with Store.open(tmp_path / "many") as store:
        stop.set()
        with stop.stoppable(), pytest.raises(StoppedError):
            store.find("a common word")
        assert len(store.find("a common word")[0]) == 10
        with stop.stoppable(), pytest.raises(StoppedError):  # the same connection, once more
            store.matching("note like '%w%'")


def test_texts_are_embedded(notes, tmp_path):
    assert notes.info()["metric"] == "cosine"
    asked = notes.query(text=NOTES[3], method="distance", top=3)
    same = notes.query(vectors=letters([NOTES[3]])[0], method="distance", top=3)
    assert asked.ids == same.ids
    assert asked.ids[0] == 3
    weighed = notes.query(4, text=[NOTES[3], NOTES[5]], weights=[1, 2, 3])
    assert weighed.ids
    assert weighed.refine(right=weighed.ids[0]).query.text == [NOTES[3], NOTES[5]]
    assert asked.explain(1).to_text().startswith("Why is 1 here?")
    batch = notes.query_batch([0], texts=NOTES[2:4], top=2)
    assert [one.query.text for one in batch] == [[], [NOTES[2]], [NOTES[3]]]
    assert batch[2].ids == notes.query(text=NOTES[3], top=2).ids


def test_a_text_that_changes_moves_its_point(notes):
    notes.update(0, payload={"text": ["zzz zzz zzz"]})
    np.testing.assert_allclose(
        notes.vectors([0])[0],
        letters(["zzz zzz zzz"])[0] / np.linalg.norm(letters(["zzz zzz zzz"])),
    )
    before = notes.vectors([0])
    notes.update(0, payload={"year": [7]})
    notes.update(0, vectors=before * 2, payload={"text": ["kept as it is"]})
    np.testing.assert_allclose(notes.vectors([0]), before)
    assert notes.payload(0)["text"] == ["kept as it is"]


def test_a_function_is_given_again_and_a_name_is_kept(tmp_path):
    Index.build(texts=NOTES, embedder=letters, path=tmp_path / "own").close()
    with Index.open(tmp_path / "own", write=True) as index:
        with pytest.raises(InputError, match="made by a function, which it cannot keep"):
            index.query(text="chess")
        with pytest.raises(InputError, match="cannot keep"):
            index.update(0, payload={"text": ["go"]})
        assert index.payload(0)["text"] == [NOTES[0]]
    with Index.open(tmp_path / "own", embedder=letters) as index:
        assert index.query(text=NOTES[1], method="distance", top=1).ids == [1]
    pytest.importorskip("wordllama")
    frame = {"body": NOTES, "year": YEARS}
    Index.build(payload=frame, texts="body", embedder="wordllama", path=tmp_path / "wl").close()
    with Index.open(tmp_path / "wl", write=True) as index:
        assert index.info()["embedder"] == {"name": "wordllama", "column": "body"}
        assert index.query(text="undo in an image editor", top=1).ids == [1]
        index.add(texts=["the Sicilian defence, an opening of chess"], payload={"year": [1]})
        assert index.query(text="chess openings", top=1, method="distance").ids == [7]
        assert index.payload(7)["body"] == ["the Sicilian defence, an opening of chess"]
        index.save()  # settings outlive a merge
        assert index.info()["embedder"]["name"] == "wordllama"


def test_vectors_and_their_embedder():
    X = letters(NOTES)
    with Index.build(X, embedder=letters) as index:
        assert index.query(text=NOTES[2], method="distance", top=1).ids == [2]
        index.add(texts=["words that are not kept"])
        assert index.columns == {}
    with Index.build(X, payload={"body": NOTES}, texts="body", embedder=letters) as index:
        assert index.info()["embedder"]["column"] == "body"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"texts": NOTES}, "nothing that makes vectors of them"),
        ({}, "there are no vectors"),
        ({"embedder": letters}, "nothing to embed"),
        ({"texts": "body", "payload": {"title": NOTES}, "embedder": letters}, "columns title"),
        ({"texts": NOTES, "payload": {"text": NOTES}, "embedder": letters}, "give them once"),
        ({"X": np.eye(7), "texts": NOTES, "embedder": letters}, "both X and a list of texts"),
        ({"X": np.eye(7), "embedder": letters}, "makes vectors of 26 numbers, but X has 7"),
        ({"texts": ["a", " "], "embedder": letters}, "text 1 is ' '"),
        ({"texts": ["a", None], "embedder": letters}, "text 1 is None"),
        ({"texts": NOTES, "ids": [1, 2], "embedder": letters}, "give as many"),
        ({"texts": NOTES, "embedder": "word2vec"}, "must be one of wordllama"),
    ],
)
def test_what_cannot_be_built(given, message):
    with pytest.raises(InputError, match=message):
        Index.build(**given)


def test_changes_without_vectors_are_refused(notes):
    with pytest.raises(InputError, match="points need vectors"):
        notes.add(payload={"year": [1]})
    with pytest.raises(InputError, match="both vectors and texts"):
        notes.add(letters(["a"]), texts=["a"])
    with Index.build(np.eye(3)) as plain:
        with pytest.raises(InputError, match="has no embedder"):
            plain.query(text="chess")
        with pytest.raises(InputError, match="has no embedder"):
            plain.add(texts=["chess"])
        assert len(plain) == 3


def test_a_hybrid_query_says_what_each_list_added(notes):
    asked = {"text": "a drawing editor", "words": "board editor", "top": 7}
    results = notes.query(**asked)
    alone = {
        "words": notes.find("board editor").ids,
        "distance": notes.query(text="a drawing editor", method="distance").ids,
        "shape": notes.query(text="a drawing editor", fusion="none").ids,
    }
    assert list(results.lists) == list(alone)
    for place, point in enumerate(results.ids):
        shares = 0.0
        for name, ids in alone.items():
            part = results.lists[name][place]
            assert part.rank == (ids.index(point) + 1 if point in ids else None)
            assert part.share == (0.0 if part.rank is None else 1 / (60 + part.rank))
            shares += part.share
        assert results.scores[place] == pytest.approx(shares, rel=1e-12)
    assert results.scores.tolist() == sorted(results.scores, reverse=True)
    assert not results.ranking.solution.certified  # nothing is proven of ranks
    assert results.rows()[0]["lists"]["words"]["rank"] == results.columns()["words_rank"][0]
    plain = notes.query(**asked, method="distance")
    assert list(plain.lists) == ["words", "distance"]
    second = notes.query(**{**asked, "top": 3}, offset=2)
    assert second.ids == results.ids[2:5]
    assert second.lists["words"] == results.lists["words"][2:5]


def test_hybrid_queries_filter_and_leave_examples_out(notes):
    found = notes.query(0, words="board", where="year < 2004")
    assert set(found.ids) == {1, 2, 4}
    assert found.ids[0] == 2
    assert 0 in notes.query(0, words="board", include_query=True).ids
    assert notes.query(0, words="zebra").lists["words"] == [(None, None, 0.0)] * 6
    assert len(notes.query(text="mail", words="mail", diversity=0.5, top=3).ids) == 3
    with pytest.raises(InputError, match="leave fusion out"):
        notes.query(0, words="board", fusion="auto")
    with pytest.raises(InputError, match="looked for by find"):
        notes.query(words="board")


def test_lists_are_as_deep_as_results_need():
    assert list_depth(1) == 100
    assert list_depth(2000) == 10_000

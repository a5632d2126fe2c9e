"""Texts and words on the command line."""

import json

import pytest

from rankfold import Index

NOTES = """\
id,title,body,year
a,Chess,A chess engine analyses positions on the board,2001
b,Gimp,Edit images: layers and undo steps,2003
c,Go,A board game from China played with stones,1990
d,Krita,A painting program for artists with brushes,2005
e,Mail,Read your mail in a terminal,1999
f,Inkscape,Vector drawing editor,2004
"""
BUILD = ["--embedder", "wordllama", "--text-column", "body", "-o", "notes"]


@pytest.fixture
def notes(call, tmp_path):
    pytest.importorskip("wordllama")
    (tmp_path / "notes.csv").write_text(NOTES)
    built = call("index", "build", "notes.csv", *BUILD)
    assert built.output.startswith(
        "notes: 6 points, 256 features, 3 columns (title, body, year), c"
    )
    return call


def test_an_index_is_built_of_texts_and_asked_in_words(notes, tmp_path):
    table = notes("query", "notes", "--text", "undo in an image editor", "--top", 2)
    assert table.output.splitlines()[1].split()[:2] == ["1", "b"]
    hybrid = notes(
        "query", "notes", "--text", "undo", "--words", "undo", "--top", 1, "--format", "json"
    )
    answer = json.loads(hybrid.output)
    assert (answer["query"]["text"], answer["query"]["words"]) == (["undo"], "undo")
    (result,) = answer["results"]
    assert result["id"] == "b"
    assert result["lists"]["words"]["rank"] == 1
    assert result["score"] == pytest.approx(sum(one["share"] for one in result["lists"].values()))
    shown = notes("query", "notes", "--text", "undo", "--words", "undo")
    assert "words_rank  distance_rank  shape_rank" in shown.output


def test_what_each_list_says_is_shown_before_a_wide_text_is(notes, monkeypatch):
    monkeypatch.setenv("COLUMNS", "70")
    shown = notes("query", "notes", "--text", "undo", "--words", "undo")
    head = shown.stdout.splitlines()[0].split()
    assert head[:3] == ["rank", "id", "score"]
    assert {"words_rank", "distance_rank", "shape_rank", "body"} <= {*head}
    assert all(len(line) <= 70 for line in shown.stdout.splitlines())


def test_points_come_and_change_as_texts(notes, tmp_path):
    (tmp_path / "more.csv").write_text("id,title,body\ng,Shogi,Japanese chess\n")
    assert notes("index", "add", "notes", "more.csv").output == "notes: added 1 point, now 7\n"
    (tmp_path / "new.csv").write_text("id,body\na,Backgammon for two\n")
    assert notes("index", "update", "notes", "new.csv").output == "notes: updated 1 point\n"
    with Index.open(tmp_path / "notes") as index:
        assert index.find("chess", ["body"]).ids == ["g"]
        assert index.find("chess").ids == ["g", "a"]  # its title has stayed
        assert index.query(text="Backgammon for two", method="distance", top=1).ids == ["a"]
    assert notes("index", "check", "notes").exit_code == 0
    assert "embedder         name wordllama, column body" in notes("info", "notes").output


def test_words_are_found(notes):
    found = notes("find", "notes", "board", "che*")
    assert [line.split()[:2] for line in found.output.splitlines()[1:]] == [["1", "a"], ["2", "c"]]
    only = notes("find", "notes", "board", "--column", "body", "--where", "year < 2000", "--top", 1)
    assert only.output.splitlines()[1].split()[1] == "c"
    rows = json.loads(notes("find", "notes", "go", "--format", "json").output)["results"]
    assert rows[0]["payload"]["title"] == "Go"
    assert notes("find", "notes", "go", "--format", "csv").output.startswith("rank,id,score,title")
    nothing = notes("find", "notes", "zebra")
    assert (nothing.exit_code, nothing.stderr) == (0, "No results.\n")


def test_least_scores_and_groups(notes):
    asked = ("query", "notes", "--id", "a", "--method", "distance")
    some = notes(*asked, "--min-score", 0.2)
    assert len(some.stdout.splitlines()) == 2
    assert some.stderr == (
        "Of 1 result, 1 is proven to score as much. It is proven that no other point does.\n"
    )
    answer = json.loads(notes(*asked, "--min-score", 0.2, "--format", "json").output)
    assert answer["solution"]["complete"] is True
    assert [row["proven"] for row in answer["results"]] == [True]
    assert 0.2 <= answer["results"][0]["score"] <= 1  # cosine similarity
    alone = notes(*asked, "--group-by", "year", "--per-group", 1, "--format", "csv")
    assert len(alone.output.splitlines()) == 6
    assert notes(*asked, "--group-by", "none").exit_code == 2


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (("find", "notes"), 2, "Missing argument"),
        (("find", "notes", "--column", "year", "go"), 2, "'year' is none of them"),
        (("query", "notes"), 2, "rankfold find"),
        (("query", "notes", "--words", "go"), 2, "rankfold find"),
        (
            ("index", "build", "notes.csv", "--text-column", "body", "-o", "x"),
            2,
            "needs --embedder",
        ),
        (("index", "build", "notes.csv", *BUILD[:3], "text", "-o", "x"), 2, "no column 'text'"),
        (("index", "build", "notes.csv", *BUILD[:3], "year", "-o", "x"), 1, "text 0 is 2001"),
        (("index", "build", "notes.csv", "--embedder", "x", *BUILD[2:4], "-o", "x"), 2, "one of"),
    ],
)
def test_what_cannot_be_done_is_said(notes, words, status, message):
    result = notes(*words)
    assert result.exit_code == status
    assert message in result.stderr

"""``rankfold query``."""

import csv
import json
import sys
from inspect import signature
from io import StringIO

import numpy as np
import pytest

from rankfold import RANKERS, Index
from rankfold.cli.errors import in_terms_of_options
from rankfold.cli.output import ending
from rankfold.cli.query import query
from rankfold.methods import METHODS


@pytest.fixture
def ask(index, call):
    def ask(*words, status=0, **options):
        result = call("query", index, *words, **options)
        assert result.exit_code == status, result.output
        return result

    return ask


def found(result):
    return json.loads(result.stdout)


def ids_of(result):
    return [row["id"] for row in found(result)["results"]]


def test_json_is_the_answer_of_the_library(ask, index):
    words = ["--id", "m5", "--id", "m9", "--weight", 2, "--weight", 1, "--not", "m50"]
    more = ["--where", "moon = 1", "--top", 4, "--offset", 2, "--set", "smoothness=3"]
    result = ask(*words, *more, "--format", "json")
    assert result.stderr == ""
    with Index.open(index) as opened:
        answer = opened.query(
            ["m5", "m9"],
            weights=[2, 1],
            negative="m50",
            where="moon = 1",
            top=4,
            offset=2,
            smoothness=3,
        )
        rows, solution = answer.rows(), answer.ranking.solution
    whole = found(result)
    assert list(whole) == ["query", "solution", "results"]
    assert whole["results"] == rows
    assert [row["rank"] for row in rows] == [3, 4, 5, 6]
    assert whole["solution"] == {
        "ended": ending(solution),
        "solver": "direct",
        "stopped": "exact",
        "bound": solution.bound,
        "certified": solution.certified,
        "complete": None,
        "converged": solution.converged,
        "touched": solution.n_touched,
        "round_trips": 0,
        "fused": solution.fused._asdict(),
    }
    asked = {"ids": ["m5", "m9"], "weights": [2.0, 1.0], "negative": ["m50"]}
    assert asked.items() <= whole["query"].items()
    assert whole["query"]["where"] == "moon = 1"
    assert whole["query"]["parameters"] == {"smoothness": 3}


def test_json_names_what_was_asked_as_the_library_does(ask):
    asked = found(ask("--id", "m5", "--format", "json"))["query"]
    parameters = signature(Index.query).parameters
    assert list(asked) == [name for name in parameters if name != "self"]


def test_methods_are_those_of_the_library():
    assert set(METHODS) == set(RANKERS)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_answers(ask, method):
    assert len(ids_of(ask("--id", "m5", "--top", 3, "--method", method, "--format", "json"))) == 3


def test_csv_has_every_column_and_every_digit(ask):
    rows = list(csv.DictReader(StringIO(ask("--id", "m5", "--format", "csv").stdout)))
    expected = found(ask("--id", "m5", "--format", "json"))["results"]
    assert list(rows[0]) == ["rank", "id", "score", "shape", "distance", "moon", "note"]
    for name in ("score", "shape", "distance"):
        assert [float(row[name]) for row in rows] == [row[name] for row in expected]
    assert [row["note"] for row in rows] == [row["payload"]["note"] for row in expected]


def test_payload_never_hides_the_columns_of_a_result(call, tmp_path):
    lines = ["id,x,y,score,shape,name", *(f"p{i},{i},{i % 2},{i}.5,round,n" for i in range(6))]
    (tmp_path / "p.csv").write_text("\n".join(lines))
    assert call("index", "build", "p.csv", "-o", "p", "--vector-columns", "x,y").exit_code == 0
    words = "query", "p", "--id", "p1", "--format", "csv"
    head = call(*words).stdout.splitlines()[0]
    assert head == "rank,id,score,shape,distance,payload.score,payload.shape,name"
    head = call(*words, "--fusion", "none").stdout.splitlines()[0]
    assert head == "rank,id,score,payload.score,payload.shape,name"


@pytest.mark.parametrize(("typed", "known"), [("7", "7"), ("8", 8), ("09", "09"), ("m5", "m5")])
def test_ids_are_found_as_text_first_then_as_whole_number(ask, typed, known):
    assert found(ask("--id", typed, "--format", "json"))["query"]["ids"] == [known]


def test_text_that_is_no_plain_number_is_no_number(ask):
    result = ask("--id", "08", status=1)
    assert result.stderr == (
        "Error: there are no points with the ids '08'; ids of this index are like 7, and the "
        "number 1 is not the text '1'.\n"
    )


def test_a_vector_from_standard_input_and_from_a_file_rank_alike(ask, tmp_path, moons):
    np.save(tmp_path / "one.npy", moons.X[9])
    text = " ".join(map(repr, moons.X[9].tolist()))
    piped = ask("--vector", "-", "--format", "json", input=text)
    read = ask("--vector", "one.npy", "--format", "json")
    assert ids_of(piped) == ids_of(read)
    assert ids_of(read)[0] == "m9"
    assert found(read)["query"]["vectors"] == 1


def test_explanations_follow_the_table_and_sit_in_json(ask):
    text = ask("--id", "m5", "--top", 2, "--explain", "--explain-id", "8").stdout
    assert [line for line in text.splitlines() if line.startswith("Why")][-1] == "Why is 8 here?"
    assert text.count("Why is") == 3
    whole = found(
        ask("--id", "m5", "--top", 2, "--explain", "--explain-id", "8", "--format", "json")
    )
    assert [row["explanation"]["point"] for row in whole["results"]] == [
        row["id"] for row in whole["results"]
    ]
    assert whole["explanation"]["point"] == 8


def test_points_of_the_query_have_nothing_to_explain(ask):
    words = ["--id", "m5", "--top", 2, "--include-query", "--explain"]
    rows = found(ask(*words, "--format", "json"))["results"]
    assert rows[0]["id"] == "m5"
    assert rows[0]["explanation"] is None
    assert rows[1]["explanation"]["score_rank"] == 1
    assert ask("--id", "m5", "--explain-id", "m5", status=2).stderr.endswith(
        "Error: --explain-id: 'm5' is an example of the query, which has no place to explain.\n"
    )


def test_picture_is_drawn_and_named_on_standard_error(ask, tmp_path):
    result = ask("--id", "m5", "--top", 1, "--picture", "why.png")
    assert (tmp_path / "why.png").read_bytes().startswith(b"\x89PNG")
    assert result.stderr == "Picture: why.png\n"
    assert "Picture" not in result.stdout


THREE = ["--id", "m5", "--top", 3]
REGION = [*THREE, "--set", "solver=region", "--fusion", "none"]


def ended(result):
    return found(result)["solution"]


def test_a_budget_ends_a_query_and_proven_goes_on(ask):
    early = ended(ask(*REGION, "--budget", 5, "--format", "json"))
    assert (early["stopped"], early["certified"]) == ("budget", False)
    proven = ask(*REGION, "--budget", "proven", "--format", "json")
    assert (ended(proven)["stopped"], ended(proven)["certified"]) == ("proven", True)
    assert ended(proven)["bound"] < early["bound"]
    assert ended(proven)["touched"] > early["touched"]
    parameters = {"solver": "region", "budget": None, "fusion": "none"}
    assert found(proven)["query"]["parameters"] == parameters


def test_auto_is_the_budget_that_is_not_given(ask):
    given, left_out = (
        found(ask("--id", "m5", *words, "--format", "json")) for words in (["--budget", "auto"], [])
    )
    assert given["query"].pop("parameters") == {"budget": "auto"}
    assert left_out["query"].pop("parameters") == {}
    assert given == left_out


def test_answers_say_in_words_how_they_ended(ask):
    early = ask(*REGION, "--budget", 5)
    solution = ended(ask(*REGION, "--budget", 5, "--format", "json"))
    assert early.stderr == f"{solution['ended']}\n"
    assert early.stderr == (
        f"Ended at its budget, {solution['touched']} points seen; scores are off by at most "
        f"{solution['bound']:.2g}. The results are not proven to be the best: --budget proven "
        "goes on.\n"
    )
    assert ask(*REGION, "--budget", 5, "--format", "csv").stderr == ""
    assert ask(*REGION, "--budget", "proven").stderr == ""
    words = [*REGION, "--budget", "proven", "--format", "json"]
    assert ended(ask(*words))["ended"] == (
        "Ended when the best points were proven. The results are proven to be the best."
    )
    assert ended(ask(*words, "--offset", 1))["ended"] == (
        "Ended when the best points were proven; this selection of results is not."
    )
    assert ended(ask("--id", "m5", "--format", "json"))["ended"] == (
        "Scores are exact but for rounding. The results are proven to be the best."
    )


@pytest.mark.parametrize("budget", ["0", "-3", "2.5", "none", "", "Proven"])
def test_a_wrong_budget_is_told_what_it_can_be(ask, budget):
    result = ask("--id", "m5", f"--budget={budget}", status=2)
    assert (
        f"Invalid value for '--budget': {budget!r} is no budget; give 'auto', a whole number of "
        "points from 1, or 'proven' to go on until the best are proven.\n"
    ) in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize("method", METHODS)
def test_a_budget_is_for_methods_that_have_one(ask, method):
    words = ["--id", "m5", "--method", method, "--budget", "proven"]
    if method in ("ran", "distance", "pagerank", "manifold"):
        ask(*words)
    else:
        assert (
            f"--budget: method {method!r} has none; give one of ran, distance, pagerank, "
            "manifold, or leave --budget out."
        ) in ask(*words, status=2).stderr


@pytest.mark.parametrize(
    ("fusion", "value"),
    [("auto", "auto"), ("none", "none"), ("reciprocal_rank",) * 2, ("2.5", 2.5), ("0", 0.0)],
)
def test_a_fusion_is_that_of_the_library(ask, index, fusion, value):
    words = ["--id", "m5", "--top", 4, "--fusion", fusion]
    whole = found(ask(*words, "--format", "json"))
    with Index.open(index) as opened:
        answer = opened.query("m5", top=4, fusion=value)
    fused = answer.ranking.solution.fused
    assert whole["query"]["parameters"] == {"fusion": value}
    assert whole["results"] == answer.rows()
    assert whole["solution"]["fused"] == (None if fused is None else fused._asdict())
    head = ask(*words).stdout.splitlines()[0].split()
    own = ["rank", "id", "score"] if fused is None else ["rank", "id", "score", "shape", "distance"]
    assert head == [*own, "moon", "note"]


def test_the_parts_of_a_score_fit_into_80_columns(ask, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    result = ask(*THREE)
    rows = [line.split() for line in result.stdout.splitlines()]
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert rows[0][:5] == ["rank", "id", "score", "shape", "distance"]
    for row, result in zip(
        rows[1:], found(ask(*THREE, "--format", "json"))["results"], strict=True
    ):
        parts = [result[name] for name in ("score", "shape", "distance")]
        assert row[2:5] == [f"{part:#.4g}" for part in parts]


def test_auto_is_the_fusion_of_ran_and_none_that_of_others(ask):
    for method in METHODS:
        words = ["--id", "m5", "--top", 3, "--method", method, "--format", "json"]
        kinds = found(ask(*words))["solution"]["fused"]
        assert (kinds is not None) == (method == "ran")


@pytest.mark.parametrize("fusion", ["-1", "100.5", "nan", "inf", "half", "", "Auto", "true"])
def test_a_wrong_fusion_is_told_what_it_can_be(ask, fusion):
    result = ask("--id", "m5", f"--fusion={fusion}", status=2)
    assert (
        f"Invalid value for '--fusion': {fusion!r} is no fusion; give 'auto', 'none' for shape "
        "alone, 'reciprocal_rank', or a weight of distance from 0 to 100.\n"
    ) in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize("method", METHODS)
def test_a_fusion_is_for_methods_that_have_one(ask, method):
    words = ["--id", "m5", "--method", method, "--fusion", "auto"]
    without = ("distance", "k_reciprocal", "lhrr", "query_expansion")
    if method not in without:
        ask(*words)
        return
    able = ", ".join(name for name in METHODS if name not in without)
    assert (
        f"--fusion: method {method!r} has none; give one of {able}, or leave --fusion out."
    ) in ask(*words, status=2).stderr


def test_narrow_terminals_lose_columns_not_ids(ask, monkeypatch):
    monkeypatch.setenv("COLUMNS", "22")
    result = ask("--id", "m5", "--top", 2)
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["rank", "id", "score"]
    assert all(len(line) <= 22 for line in lines)
    left_out = "shape, distance, moon, note"
    told = f"Columns without room: {left_out}. Choose with --columns, or take --format csv.\n"
    assert result.stderr == told


def test_nothing_in_a_cell_can_steer_the_terminal(call, tmp_path):
    columns = {"name": ["\x1b[2Jgone", "two\nlines", "x" * 99, "[bold]b", "ok", "ok"]}
    Index.build(np.eye(6), payload=columns, path=tmp_path / "p").close()
    text = call("query", "p", "--id", 4, "--top", 5).stdout
    assert "\x1b" not in text
    assert "two lines" in text
    assert "[bold]b" in text
    assert f"{'x' * 29}..." in text
    assert len(text.splitlines()) == 6


def test_warnings_are_one_line(ask, shell, index):
    line = f"rankfold query {index} --id m5 --set max_iter=2 --set guard=false --top 1"
    result = shell(line)
    assert result.returncode == 0
    assert result.stderr.startswith("Warning: 1 of 1 queries ended at max_iter=2")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        ([], 2, "Give a point with --id, vectors with --vector, or a text"),
        (["--id", "m5", "--set", "smoothness"], 2, "such as smoothness=10"),
        (["--id", "m5", "--explain", "--format", "csv"], 2, "csv has no place for explanations"),
        (["--id", "m5", "--format", "xml"], 2, "'xml' is not one of"),
        (["--id", "m5", "--method", "magic"], 2, "'magic' is not one of 'ran'"),
        (["--id", "m5", "--set", "budget=9"], 2, "budget has an option of its own; give --budget"),
        (["--id", "m5", "--set", "fusion=9"], 2, "fusion has an option of its own; give --fusion"),
        (["--id", "m5", "--set", "speed=3"], 2, "--set: method 'ran' has no parameter 'speed'"),
        (
            ["--id", "m5", "--set", "top=5"],
            2,
            "method 'ran' has no parameter 'top'",
        ),
        (["--id", "m5", "--set", "where=x"], 2, "method 'ran' has no parameter 'where'"),
        (["--id", "m5", "--set", "method=ran"], 2, "method 'ran' has no parameter 'method'"),
        (["--id", "m5", "--set", "self=1"], 2, "method 'ran' has no parameter 'self'"),
        (["--id", "m5", "--not", "m5"], 2, "'m5' is an example more than once"),
        (["--id", "m5", "--weight", "1", "--weight", "2"], 2, "the query has 1 examples"),
        (["--id", "m5", "--top", "0"], 2, "top is 0, but must be a whole number"),
        (["--id", "m5", "--diversity", "2"], 2, "diversity is 2.0, but must be a number 0 or"),
        (["--id", "m5", "--set", "smoothness=-1"], 2, "smoothness is -1, but must be a finite"),
        (["--id", "m5", "--where", "colour = 3"], 2, "there is no column 'colour'"),
        (["--id", "m5", "--picture", "why.jpg"], 2, "pictures are .png files"),
        (["--id", "m5", "--picture", "no/why.png"], 1, "the folder 'no' does not exist"),
        (["--vector", "no.npy"], 1, "there is no file 'no.npy'"),
        (["--vector", "no.png"], 1, "the index was not built from images"),
    ],
)
def test_bad_words(ask, words, status, message):
    result = ask(*words, status=status)
    assert message in result.stderr
    assert result.stdout == ""


def test_a_vector_of_another_width_names_its_source(ask):
    result = ask("--vector", "-", input="1 2 3", status=1)
    assert result.stderr == (
        "Error: standard input has vectors of 3 numbers, but those of the index have 2; "
        "make them in the same way.\n"
    )


def test_no_result_is_said_on_standard_error(ask):
    result = ask("--id", "m5", "--where", "moon = 5")
    assert result.stdout.splitlines() == ["rank  id  score  shape  distance  moon  note"]
    assert result.stderr == "No results.\n"


def test_output_that_cannot_hold_a_sign_is_an_error(call, shell, tmp_path):
    Index.build(np.eye(4), payload={"name": ["東"] * 4}, path=tmp_path / "p").close()
    result = shell("rankfold query p --id 1 --format csv", PYTHONIOENCODING="latin-1")
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith("Error: the output is in latin-1, which has no '\\u6771'")


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("give include_query=True.", "give --include-query."),
        ("include_query is 3", "--include-query is 3"),
        ("give explain=True to explain", "give --explain to explain"),
        ("'explain=True' in x/explain=True", "'explain=True' in x/explain=True"),
    ],
)
def test_messages_speak_of_options(message, shown):
    assert in_terms_of_options(message, query) == shown


@pytest.fixture
def shelf(tmp_path):
    """An index with narrow columns before a wide text."""
    X = np.arange(9.0)[:, None]
    text = [f"{row} " + "a long description " * 4 for row in range(9)]
    numbers = {f"number_{n}": list(range(9)) for n in range(8)}
    payload = {**numbers, "shelf": ["left"] * 9, "text": text, "rank": list(range(9))}
    Index.build(X, payload=payload, path=tmp_path / "shelf").close()
    return "shelf"


def test_the_widest_text_stays(call, shelf):
    result = call("query", shelf, "--id", 0, "--top", 2, "--fusion", "none")
    head, first, *_ = result.stdout.splitlines()
    assert head.split()[-1] == "text"
    assert "1 a long description" in first
    assert all(len(line) <= 100 for line in result.stdout.splitlines())
    assert "Columns without room: number_5, number_6, number_7, shelf, payload.rank." in (
        result.stderr
    )


def test_columns_are_chosen_in_their_order(call, shelf):
    words = ("query", shelf, "--id", 0, "--top", 1, "--fusion", "none", "--columns")
    table = call(*words, "text,rank,number_7")
    assert table.stdout.split("\n")[0].split() == [
        "rank", "id", "score", "text", "payload.rank", "number_7"
    ]  # fmt: skip
    assert "1 a long description a long description a long" in table.stdout
    assert "without room" not in table.stderr
    assert call(*words, "shelf", "--format", "csv").stdout.splitlines()[0] == "rank,id,score,shelf"
    assert call(*words, "").stdout.split("\n")[0].split() == ["rank", "id", "score"]
    wrong = call(*words, "colour")
    assert (wrong.exit_code, "no column 'colour'" in wrong.stderr) == (2, True)
    assert call(*words, "text", "--format", "json").exit_code == 2
    found = call("find", shelf, "description", "--columns", "shelf", "--top", 1)
    assert found.stdout.split("\n")[0].split() == ["rank", "id", "score", "shelf"]


def test_a_search_of_everything_is_announced(call, index, monkeypatch):
    words = ("query", index, "--id", "m5", "--top", 1)
    longer = (*words, "--set", "n_neighbors=100")
    quick = call(*longer)  # 400 points take no time
    assert (quick.exit_code, quick.stderr) == (0, "")
    monkeypatch.setattr(sys.modules["rankfold.cli.query"], "UNTOLD_SECONDS", 0)
    assert call(*words).stderr == ""
    told = call(*longer)
    assert (told.exit_code, told.stdout) == (0, quick.stdout)
    assert "hold 22 neighbours, too few for n_neighbors=100: all 400 points" in told.stderr
    assert "built with --neighbors 100" in told.stderr

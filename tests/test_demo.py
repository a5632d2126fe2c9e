import re
import shlex
import subprocess
import sys
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from rich.console import Console
from sklearn.datasets import load_digits

from rankfold import RAN, Distance, Index
from rankfold.cli import main
from rankfold.datasets import load
from rankfold.demo import Precisions, example_table, reason_for, run, signs
from rankfold.drawing import Strip, draw_strips
from rankfold.errors import InputError, MissingExtraError, StorageError

LABELS = load_digits().target


@pytest.fixture(scope="module")
def rankers():
    X = load_digits().data
    return {"Distance": Distance().fit(X), "RAN": RAN().fit(X)}


@pytest.fixture(scope="module")
def hits(rankers):
    found = {name: ranker.search(k=100)[0] for name, ranker in rankers.items()}
    return {name: LABELS[indices] == LABELS[:, None] for name, indices in found.items()}


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    out = tmp_path_factory.mktemp("demo") / "new" / "folder [1]"
    screen = StringIO()
    path = run(out, console=Console(file=screen, width=100))
    return path, screen.getvalue()


@pytest.fixture(scope="module")
def row(demo):
    return int(re.search(r"same digit as row (\d+)", demo[1]).group(1))


def strip(n_results=20):
    right = np.arange(n_results) % 3 > 0
    images = np.random.default_rng(0).random((n_results, 8, 8))
    return Strip("RAN", "by shape", images, np.arange(n_results) % 10, right)


def draw(path):
    one = strip()
    draw_strips(path, "Title", "Subtitle", (one.images[0], "query"), (one, one), ("a", "b"))


def cells(line):
    return [cell.strip() for cell in re.split("[│┃]", line)[1:-1]]


def table_rows(text, first_cell):
    return [cells(line) for line in text.splitlines() if cells(line)[:1] == [first_cell]]


def test_picture_is_complete(demo):
    from PIL import Image

    path, _ = demo
    assert path.name == "demo.png"
    assert sorted(file.name for file in path.parent.iterdir()) == ["demo.png", "digits"]
    with Image.open(path) as image:
        image.load()
        assert image.format == "PNG"
        assert 1500 <= image.width <= 3000
        assert 500 <= image.height <= 1500


def test_index_holds_the_digits_and_how_they_are_pictures(demo):
    with Index.open(demo[0].with_name("digits")) as index:
        assert index.ids == list(range(len(LABELS)))
        assert index.payload(index.ids) == {"digit": LABELS.tolist()}
        np.testing.assert_array_equal(index.vectors(index.ids), load_digits().data)
        images = index.info()["source"]["images"]
    assert images == {"size": [8, 8], "colour": False, "scale": load_digits().data.max()}


@pytest.mark.slow
def test_index_is_replaced(tmp_path):
    Index.build([[0.0], [1.0]], path=tmp_path / "digits").close()
    run(tmp_path, 0, Console(file=StringIO()))
    with Index.open(tmp_path / "digits") as index:
        assert len(index) == len(LABELS)


def test_foreign_folder_is_kept(tmp_path):
    (tmp_path / "digits").mkdir()
    (tmp_path / "digits" / "scan.png").touch()
    with pytest.raises(StorageError, match="no index"):
        run(tmp_path, 0, Console(file=StringIO()))
    assert [file.name for file in tmp_path.rglob("*.*")] == ["scan.png"]


def test_table_shows_what_the_rankers_answer(demo, rankers, row):
    _, text = demo
    rankings = [rankers[name].rank(row, top=20) for name in ("Distance", "RAN")]
    for place in range(20):
        expected = []
        for ranking in rankings:
            found = ranking.indices[place]
            mark = "✓" if LABELS[found] == LABELS[row] else "✗"
            expected += [str(found), str(LABELS[found]), mark]
        expected.append(f"{rankings[1].scores[place]:.4f}")
        assert [str(place + 1), *expected] in table_rows(text, str(place + 1))


def test_footer_shows_the_precision_of_the_query(demo, rankers, row):
    _, text = demo
    footer = table_rows(text, "precision@20")[0]
    for name, cell in (("Distance", footer[1]), ("RAN", footer[4])):
        indices = rankers[name].rank(row, top=20).indices
        right = sum(LABELS[found] == LABELS[row] for found in indices)
        assert cell == f"{5 * right}%"


@pytest.mark.parametrize("cutoff", [10, 20, 50, 100])
def test_means_cover_all_queries(demo, hits, cutoff):
    _, text = demo
    plain, shape = (hits[name][:, :cutoff].sum(axis=1) for name in ("Distance", "RAN"))
    total = cutoff * len(LABELS)
    shares = [plain.sum() / total, shape.sum() / total, (shape > plain).mean()]
    shares.append((shape < plain).mean())
    line = table_rows(text, f"precision@{cutoff}")[-1]
    assert line[1:] == [f"{100 * share:.1f}%" for share in shares]


def test_default_query_is_the_one_that_shape_helps_most(demo, hits, row):
    _, text = demo
    gains = hits["RAN"][:, :20].sum(axis=1) - hits["Distance"][:, :20].sum(axis=1)
    assert gains[row] == gains.max()
    assert f"same digit as row {row} (digit {LABELS[row]})?" in text
    assert f"Row {row} was chosen to show where shape helps" in text
    harmed = int(re.search(r"harms most: rankfold demo --query (\d+)", text).group(1))
    assert gains[harmed] == gains.min()


def test_last_lines_name_what_there_is_and_what_to_try_next(demo):
    path, text = demo
    *_, picture, index, end, look = text.splitlines()
    assert picture == f"Picture: {path}"
    assert index == f"Index: {path.with_name('digits')}"
    assert end.startswith("The demo has ended.")
    assert "rankfold demo --query" in end
    # Quoted, because the folder has a space in its name.
    assert look == f"Ask the index in a browser: rankfold serve '{path.with_name('digits')}'"


@pytest.mark.slow
def test_the_command_draws_says_what_shape_does_and_prints_a_line_that_can_be_typed(tmp_path, hits):
    script = Path(sys.executable).with_name("rankfold")
    # Nothing that was installed is on the PATH, so that the program must be named by its path.
    named = {"PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [script, "demo", "--out", "shown", "--query", "1361"]
    done = subprocess.run(command, cwd=tmp_path, env=named, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    told = done.stdout.splitlines()[-1].partition("browser: ")[2]
    program, *rest = shlex.split(told)
    assert rest == ["serve", "shown/digits"]
    assert (tmp_path / program).resolve() == script.resolve()
    before, after = (5 * hits[name][1361, :20].sum() for name in ("Distance", "RAN"))
    assert f"Shape harms here: precision@20 falls from {before}% to {after}%." in done.stdout
    assert "was chosen" not in done.stdout
    assert (tmp_path / "shown" / "demo.png").is_file()


@pytest.mark.parametrize(
    ("plain", "shape", "sentence"),
    [
        (0.3, 1.0, "Shape helps here: precision@20 rises from 30% to 100%."),
        (0.5, 0.5, "Shape neither helps nor harms here: precision@20 stays at 50%."),
        (0.5, 0.4, "Shape harms here: precision@20 falls from 50% to 40%."),
    ],
)
def test_verdict_is_plain(plain, shape, sentence):
    precisions = Precisions({20: np.array([plain])}, {20: np.array([shape])})
    assert reason_for(precisions, 0, chosen=False) == sentence


def test_equal_gains_are_ordered_by_precision():
    plain, shape = [0.25, 0.3, 1.0, 0.35], [0.95, 1.0, 0.65, 0.0]
    precisions = Precisions({20: np.array(plain)}, {20: np.array(shape)})
    assert precisions.from_harm_to_help().tolist() == [3, 2, 0, 1]


@pytest.mark.parametrize("wrong", [-1, len(LABELS)])
def test_query_must_be_a_row(tmp_path, wrong):
    with pytest.raises(InputError, match=f"query is {wrong}, .* from 0 to 1796"):
        run(tmp_path / "out", wrong)
    assert not (tmp_path / "out").exists()


def test_command_turns_errors_into_one_line(tmp_path):
    result = CliRunner().invoke(main, ["demo", "--out", str(tmp_path), "--query", "-1"])
    assert result.exit_code == 2
    assert (
        result.output == "Error: --query is -1, but must be a row of the digits, from 0 to 1796.\n"
    )
    (tmp_path / "file").touch()
    result = CliRunner().invoke(main, ["demo", "--out", str(tmp_path / "file" / "below")])
    assert result.exit_code == 1
    assert "Traceback" not in result.output


def test_missing_matplotlib_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(
        MissingExtraError, match="the extra 'plot' brings it: pip install 'matplotlib"
    ):
        run(tmp_path)
    with pytest.raises(
        MissingExtraError, match="the extra 'plot' brings it: pip install 'matplotlib"
    ):
        draw(tmp_path / "demo.png")


@pytest.mark.parametrize("width", [60, 80])
def test_consoles_without_unicode_work(rankers, row, width):
    rankings = {name: ranker.rank(row, top=20) for name, ranker in rankers.items()}
    screen = TextIOWrapper(BytesIO(), encoding="ascii")
    console = Console(file=screen, width=width)
    console.print(example_table(load("digits"), row, rankings, signs(console)))
    screen.flush()
    assert b"ok" in screen.buffer.getvalue()


def test_interruption_leaves_the_old_picture(tmp_path, monkeypatch):
    def interrupt(self, content):
        with self.open("wb") as file:
            file.write(content[: len(content) // 2])
        raise KeyboardInterrupt

    path = tmp_path / "demo.png"
    draw(path)
    before = path.read_bytes()
    monkeypatch.setattr(Path, "write_bytes", interrupt)
    with pytest.raises(KeyboardInterrupt):
        draw(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_drawing_leaves_matplotlib_as_it_was(tmp_path):
    import matplotlib

    before = dict(matplotlib.rcParams)
    draw(tmp_path / "demo.png")
    assert dict(matplotlib.rcParams) == before

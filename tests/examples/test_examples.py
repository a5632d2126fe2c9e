"""Every example runs, finds what it claims, draws a picture, and is in the gallery as it is."""

import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
from PIL import Image

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted(path.stem for path in (ROOT / "examples").glob("[!_]*.py"))
GALLERY = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
LARGEST = 120_000

TESTED_APART = {"text_search", "image_features"}
"""They need packages of their own."""


def two_moons(found):
    assert found["wrong_ran"] == 0
    assert found["ran"] > found["plain"]
    return (
        f"{found['wrong_plain']} of the first 199",
        f"{found['plain']:.1%}",
        f"{found['ran']:.0%}",
    )


def digits_retrieval(found):
    assert found["ran"] > found["plain"]
    assert found["better"] > found["worse"] > 0
    assert found["Gains most after"] > found["Gains most before"]
    assert found["Loses most after"] < found["Loses most before"], "the loser must be shown"
    lost = found["Loses most before"], found["Loses most after"]
    return (
        f"{found['plain']:.1%} to {found['ran']:.1%}",
        f"{found['worse']:.1%}",
        "from {:.0f} right to {:.0f}".format(*lost),
    )


def explain_path(found):
    assert found["same digit"] == 1
    assert found["steps"] > 1
    assert found["place by RAN"] < 50 < 1000 < found["place by plain distance"]
    places = f"{found['place by RAN']} by RAN and {found['place by plain distance']:,}"
    return places, f"{found['steps']} steps", f"{found['share of the path']:.1%}"


def own_graph(found):
    assert found["shortest"] < found["longest"], "rows of one length show nothing new"
    assert found["ran"] > found["plain"]
    lengths = f"{found['shortest']} to {found['longest']} neighbours"
    return lengths, f"{found['ran']} of the 220", f"{found['plain']}"


def edit_distance(found):
    assert found["ran"] > found["plain"]
    return f"{found['plain']:.1%}", f"{found['ran']:.0%}"


def feedback(found):
    assert found["after"] > found["before"]
    assert found["shown after"] > found["shown before"]
    return f"{found['before']:.1%} to {found['after']:.1%}", f"{found['worse']:.1%}"


def one_graph(found):
    assert found["learned"] > found["plain"]
    assert found["left"] < found["wrong edges"]
    return f"{found['plain']:.1%}", f"{found['learned']:.0%}", f"{found['wrong edges']} edges"


def shape_vectors(found):
    assert found["fused"] > found["plain"]
    return f"{found['plain']:.1%}", f"{found['fused']:.1%}", f"{found['worse']:.1%}"


def when_it_hurts(found):
    assert found["harm"] > found["less"] > 0
    assert found["tuned"] > found["default"]
    assert found["guarded"] > found["unguarded"]
    return (
        f"{found['default']:.1%} to {found['tuned']:.1%}",
        f"{found['harm']:.1%} to {found['less']:.1%}",
        f"{found['unguarded']:.0%}",
    )


CLAIMS = {
    claim.__name__: claim
    for claim in (
        two_moons,
        digits_retrieval,
        explain_path,
        own_graph,
        edit_distance,
        feedback,
        one_graph,
        shape_vectors,
        when_it_hurts,
    )
}


def section(name):
    """Return the section of the gallery that shows the picture of an example."""
    sections = GALLERY.split("\n## ")[1:]
    (found,) = [part for part in sections if f"](images/gallery/{name}.png)" in part]
    return found


def check_picture(path):
    assert path.stat().st_size < LARGEST
    with Image.open(path) as picture:
        assert picture.width == 1400
        assert len(picture.convert("RGB").getcolors(2**20)) > 20, "the picture is blank"


def test_every_example_has_claims():
    assert set(EXAMPLES) - TESTED_APART == set(CLAIMS)


LONG = {"digits_retrieval", "one_graph", "shape_vectors", "when_it_hurts"}
"""They evaluate many queries, or learn a graph."""


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow if name in LONG else ()) for name in sorted(CLAIMS)],
)
def test_example(name, tmp_path, monkeypatch, capsys):
    monkeypatch.syspath_prepend(ROOT / "examples")
    spec = spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    found = module.main(tmp_path / "new")
    assert [path.name for path in (tmp_path / "new").iterdir()] == [f"{name}.png"]
    check_picture(tmp_path / "new" / f"{name}.png")
    assert f"{name}.png" in capsys.readouterr().out
    text = " ".join(section(name).split()).replace(" %", "%")
    for figure in CLAIMS[name](found):
        assert figure in text, f"docs/gallery.md does not say {figure!r} of {name}"


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_is_in_the_gallery(name):
    text = section(name)
    assert f'--8<-- "examples/{name}.py"' in text
    assert f"python examples/{name}.py" in text
    check_picture(ROOT / "docs" / "images" / "gallery" / f"{name}.png")
    overview = GALLERY.split("\n## ")[0]
    anchor = text.splitlines()[0].lower().replace(",", "").replace("?", "").replace(" ", "-")
    assert f"](#{anchor})" in overview


@pytest.mark.slow
def test_example_runs_from_the_command_line(tmp_path):
    script = ROOT / "examples" / "own_graph.py"
    command = [sys.executable, script, "--out", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (tmp_path / "own_graph.png").exists()
    assert "nearest on foot" in done.stdout

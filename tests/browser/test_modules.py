"""Pure functions of the page, called one by one."""

import base64
import io
import re
from graphlib import TopologicalSorter
from importlib.resources import files

import numpy as np
import pytest
from browser.page_view import chroma

IMPORT = re.compile(r'^import .* from "\./(\w+\.js)";$', re.MULTILINE)


@pytest.fixture
def call(page):
    """Call a function of a module with arguments."""
    page.goto("/")

    def call(module, code, *given):
        script = f"async given => {{ const m = await import('/page/{module}'); return {code}; }}"
        return page.evaluate(script, list(given))

    return call


def test_modules_import_each_other_in_no_circle():
    scripts = [*files("rankfold.service").joinpath("page").iterdir()]
    imports = {
        file.name: IMPORT.findall(file.read_text()) for file in scripts if file.name.endswith(".js")
    }
    order = list(TopologicalSorter(imports).static_order())
    assert order[-1] == "main.js"
    assert {*order} == {*imports}


def test_moves_in_words(call):
    assert call("results.js", "m.rankShift(3, 10, 100)") == {
        "text": "▲ 7",
        "kind": "up",
        "words": "7 up from place 10 by plain distance",
    }
    assert call("results.js", "m.rankShift(10, 3, 100)")["text"] == "▼ 7"
    assert call("results.js", "m.rankShift(3, 3, 100)")["text"] == "="
    assert call("results.js", "m.rankShift(3, undefined, 100)")["text"] == "▲ >100"
    assert call("results.js", "m.rankByShape(3, 8, 0.1, 100)")["text"] == "→ 8"
    assert call("results.js", "m.rankByShape(3, 8, 0, 100)")["text"] == "not reached"
    assert call("results.js", "m.rankByShape(3, undefined, 0, 100)")["text"] == "beyond 100"
    assert call("captions.js", "m.countMatches([1, 2, 1, 1], [1], 3)") == {"same": 2, "of": 3}
    assert call("elements.js", "[0, 0.00005, 0.031, 0.5, 1].map(m.formatPercent)") == [
        "0 %",
        "under 0.01 %",
        "3.1 %",
        "50.0 %",
        "100 %",
    ]
    assert call("elements.js", "[0, 0.12345, 1e-9, NaN, 123456].map(m.formatNumber)") == [
        "0",
        "0.123",
        "1.0e\N{MINUS SIGN}9",
        "\N{EN DASH}",
        "1.2e5",
    ]


def test_npy_files_are_read(call):
    whole = np.array([[1, 2, 3], [4, 5, 100]])
    bytes_ = "Uint8Array.from(atob(given[0]), one => one.charCodeAt(0)).buffer"
    for kind in ("<f4", ">f8", "<i8", "<i4", "<i2", "<u2", "|u1", "|i1"):
        array = whole.astype(kind)
        for one in (array, np.asfortranarray(array), array[0]):
            file = io.BytesIO()
            np.save(file, one)
            content = base64.b64encode(file.getvalue()).decode()
            read = call("vectors.js", f"m.parseNpy({bytes_})", content)
            assert read == np.atleast_2d(one).tolist()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_ramp_grows_evenly_lighter_or_darker(call, theme):
    ramp = np.array(call("theme.js", "m.colourRamp(given[0], 33)", theme)) / 255
    linear = np.where(ramp <= 0.04045, ramp / 12.92, ((ramp + 0.055) / 1.055) ** 2.4)
    luminance = linear @ [0.2126, 0.7152, 0.0722]
    steps = np.diff(np.cbrt(luminance)) * (1 if theme == "light" else -1)
    assert np.all(steps > 0)
    assert steps.max() < 2.5 * steps.min()
    assert np.all(chroma(255 * ramp) > 60)
    neutral = call("theme.js", "m.NEUTRAL[given[0]]", theme)
    assert chroma(neutral) < 30


def test_columns_have_colours(call):
    few = call("theme.js", "m.colourScale(['a', 'b', 'a', null], 'light').legend")
    assert [one["label"] for one in few] == ["a", "b"]
    assert few[0]["colour"] != few[1]["colour"]
    many = call("theme.js", "m.colourScale([...Array(40).keys()], 'dark').legend")
    assert [one["label"] for one in many] == ["0", "19.5", "39"]
    texts = call("theme.js", "m.colourScale([...Array(40).keys()].map(String), 'dark').legend")
    assert texts[-1]["label"] == "others"


def test_links_are_read_as_they_were_written(call):
    asked = {
        "index": "a b#?",
        "ids": [1, "1", "a,b", 'q"'],
        "vectors": [],
        "text": "undo & “redo”?",
        "negative": [7],
        "k": 9,
        "smoothness": 0.5,
        "alternations": 3,
        "fusion": "reciprocal_rank",
        "proven": True,
        "where": "x = 'ä&b'",
        "diversity": 0.25,
        "method": "ppr",
        "judge": "",
        "colouring": "column",
    }
    assert call("query.js", "m.parseLink(m.formatLink(given[0]))", asked) == asked
    plain = {**asked, "ids": [], "vectors": [[0.5, -1e-7], [2, 3]]}
    assert call("query.js", "m.parseLink(m.formatLink(given[0]))", plain) == plain
    assert call("query.js", "m.formatLink(m.emptyQuery())") == "#"
    assert call("query.js", "m.parseLink('#i?fusion=magic').fusion") is None


def test_the_parts_of_scores_are_kept_where_they_were_fused(call):
    results = [
        {"id": 7, "score": 0.5, "shape": 0.61, "distance": 22.06, "payload": {}},
        {"id": "a", "score": 0.25, "shape": None, "distance": None, "payload": {}},
    ]
    parts = call("results.js", "[...m.toRanking(given[0]).parts]", results)
    assert parts == [[7, {"shape": 0.61, "distance": 22.06}]]
    assert call("results.js", "m.formatParts(given[0])", parts[0][1]) == "shape 0.61, distance 22.1"


def test_a_click_is_answered_from_few_points_unless_a_proof_is_asked_for(call):
    def parameters(**asked):
        code = "m.requestQuery({...m.emptyQuery(), ...given[0]}).parameters"
        return call("query.js", code, asked)

    assert parameters() == {"budget": 2000}
    assert parameters(proven=True) == {"budget": "proven"}
    assert parameters(method="pagerank", fusion="auto") == {"budget": 2000, "fusion": "auto"}
    assert parameters(method="lcdp", proven=True, fusion="none") == {"fusion": "none"}
    assert parameters(method="distance", fusion="none") == {"budget": 2000}


def test_the_nearest_point_is_found(call):
    places = np.random.default_rng(1).uniform(-3, 3, size=(300, 2)).astype("<f4")
    given = {
        "ids": list(range(300)),
        "points": 300,
        "places": base64.b64encode(places.tobytes()).decode(),
    }
    probes = np.random.default_rng(2).uniform(-3.5, 3.5, size=(50, 2))
    code = "given[1].map(([x, y]) => m.nearestRow(m.parseLayout(given[0]), x, y, 0.3))"
    found = call("layout.js", code, given, probes.tolist())
    away = np.linalg.norm(places[None] - probes[:, None], axis=-1)
    expected = [int(row.argmin()) if row.min() <= 0.3 else None for row in away]
    assert found == expected
    assert None in expected


def test_a_view_goes_from_places_to_pixels_and_back(call):
    there = call(
        "viewport.js",
        """(() => {
            const view = new m.Viewport();
            view.resize(400, 300);
            view.fit({ left: -1, right: 3, bottom: 0, top: 2 });
            const whole = view.toPixel(-1, 2);
            const under = view.toPosition(120, 80);
            view.zoomBy(4, 120, 80);
            return { whole, under, still: view.toPosition(120, 80), back: view.toPixel(...under) };
        })()""",
    )
    assert there["whole"] == pytest.approx([26, 63])
    assert there["still"] == pytest.approx(there["under"])
    assert there["back"] == pytest.approx([120, 80])


def test_turns_are_taken_in_order_and_the_latest_waits(call):
    order = call(
        "api.js",
        """(async () => {
            const queue = new m.RequestQueue(), done = [], waits = [];
            const task = name => signal => new Promise(end => waits.push(() => {
                if (!signal.aborted) done.push(name);
                end();
            }));
            const next = async () => { waits.shift()(); await new Promise(r => setTimeout(r)); };
            queue.submit(task('first'), false);
            queue.submit(task('skipped'), false);
            queue.submit(task('second'), false);
            await next(); await next();
            queue.submit(task('ended'), false);
            queue.submit(task('urgent'), true);
            await next(); await next();
            return done;
        })()""",
    )
    assert order == ["first", "second", "urgent"]


def test_pixels_become_a_vector(call):
    pixels = "new Uint8ClampedArray([255, 255, 255, 255, 0, 0, 0, 255])"
    assert call("vectors.js", f"m.pixelsToVector({pixels}, false, 16)") == pytest.approx([16, 0])
    assert call("vectors.js", f"m.pixelsToVector({pixels}, true, 1)") == [1, 1, 1, 0, 0, 0]


def test_the_column_to_read_tells_points_apart(call):
    columns = {"kind": "text", "name": "text", "body": "text", "year": "integer"}
    points = [
        {"kind": "a very long name of a kind", "name": name, "body": body, "year": 1}
        for name, body in (("one", "the first"), ("two", "the second"), ("three", None))
    ]
    read = "m.textColumn(...given)"
    assert call("answer.js", read, columns, points) == "body"
    assert call("answer.js", read, {**columns, "body": "number"}, points) == "name"
    assert call("answer.js", read, {"kind": "text", "year": "integer"}, points) is None
    assert call("answer.js", read, columns, []) is None
    assert call("elements.js", "m.truncate(...given)", " one\n two three", 8) == "one two…"


def test_the_column_to_judge_by_names_kinds(call):
    def judged(columns, judge=None):
        return call("query.js", "m.judgedColumn(...given)", {"columns": columns}, {"judge": judge})

    assert judged({"Text": "text", "year": "number", "kind": "text"}) == "kind"
    assert judged({"text": "text", "image": "text"}) == "text"
    assert judged({"text": "text", "kind": "text"}, "text") == "text"
    assert judged({"text": "text"}, "gone") is None
    assert judged({"year": "number"}) is None

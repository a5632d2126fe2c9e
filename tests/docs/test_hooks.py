"""What the hooks of the site make of links, formulas and names."""

from pathlib import Path
from types import SimpleNamespace

import crossing
import installing
import mathematics
import parameters
import pytest
import shown
from griffe import temporary_visited_module
from markdown import Markdown
from mkdocs.exceptions import PluginError

DOCS = Path(__file__).parents[2] / "docs"


def page(text, name="algorithm.md"):
    """Return a page after links that stand alone were replaced."""
    file = SimpleNamespace(abs_src_path=str(DOCS / name), src_path=name)
    config = SimpleNamespace(docs_dir=str(DOCS))
    return shown.on_page_markdown(text, page=SimpleNamespace(file=file), config=config)


def rendered(text):
    return Markdown(extensions=[mathematics.Formulas()]).convert(text)


def test_a_link_becomes_the_definition_without_its_docstring():
    name = "rankfold.graph.adaptive.symmetrize"
    made = page(f"before\n\n[{name}](../src/rankfold/graph/adaptive.py)\n\nafter")
    assert f'title="{name}"\ndef symmetrize(affinity' in made
    assert "return ((affinity + affinity.T) / 2).tocsr()\n```" in made
    assert "Rows of S beyond its columns" not in made
    assert made.startswith("before\n\n```python")
    assert made.endswith("```\n\nafter")


def test_a_method_stands_without_its_indent_and_marks_for_checkers():
    name = "rankfold.rankers.alternation.Alternation.run"
    made = page(f"[{name}](../src/rankfold/rankers/alternation.py)")
    assert "\ndef run(\n    self, query: Query" in made
    kernel = page("[rankfold.solvers.push.push](../src/rankfold/solvers/push.py)")
    assert "type: ignore" not in kernel


def test_links_in_a_sentence_and_inside_the_docs_stay():
    for text in ["see [x](../src/rankfold/types.py) there", "[Defaults](defaults.md)"]:
        assert page(text) == text
    assert page("[Home](../index.md)", "api/index.md") == "[Home](../index.md)"


def test_other_files_are_shown_or_included():
    assert page("[CHANGELOG.md](../CHANGELOG.md)").startswith("# Changelog")
    assert "```yaml" in page("[CITATION.cff](../CITATION.cff)")


@pytest.mark.parametrize(
    ("link", "why"),
    [
        ("[rankfold.types.gone](../src/rankfold/types.py)", "no definition of gone"),
        ("[rankfold.types.Query](../src/rankfold/check.py)", "not in check.py"),
        ("[rankfold.nowhere.x](../src/rankfold/nowhere.py)", "nowhere.py"),
    ],
)
def test_what_is_gone_fails_the_build(link, why):
    with pytest.raises(PluginError, match=why):
        page(link)


def test_formulas_become_mathml_and_code_stays():
    assert rendered("so $s_{ij} \\ge 0$ holds").count("<math") == 1
    assert "<math" in mathematics.fence("\\frac{1}{2}")
    for text in ["`$HOME` and `$PATH`", "5 $ or 6 $", "\\$a and \\$b"]:
        assert "<math" not in rendered(text)


def test_an_unknown_command_fails_the_build():
    with pytest.raises(PluginError, match=r"\\nosuchcommand"):
        mathematics.mathml("\\nosuchcommand{x}")


def test_names_are_linked_and_other_code_is_not():
    known = crossing.targets(["::: rankfold.RAN\n    options: {}\n", "::: rankfold.Index"])
    linked = crossing.link("<code>Index.query()</code> <b><code>RAN</code></b>", known)
    assert 'identifier="rankfold.Index.query"' in linked
    assert linked.count("<autoref") == 1


def test_a_name_that_could_mean_several_is_not_linked():
    pages = ["::: rankfold.a.Both\n\n::: rankfold.b.Both", "::: rankfold.cluster.rank_many"]
    assert crossing.targets(pages) == {}


def test_parameters_have_their_own_defaults_and_types():
    source = '''
def turn(side="both", top: int = 10, offset: int = 0, X=None):
    """Turn.

    Parameters
    ----------
    side : {"left", "both"}
    top, offset
        Numbers.
    X : array, shape (n_points, n_features)
    """
'''
    with temporary_visited_module(source, docstring_parser="numpy") as module:
        parameters.correct_members(module)
        (section,) = [part for part in module["turn"].docstring.parsed if part.title is None][1:]
        found = {one.name: (str(one.annotation), one.value) for one in section.value}
    assert found == {
        "side": ('{"left", "both"}', "'both'"),
        "top": ("int", "10"),
        "offset": ("int", "0"),
        "X": ("array, shape (n_points, n_features)", "None"),
    }


@pytest.mark.parametrize("published", [False, True])
def test_commands_install_what_can_be_installed(published):
    text = "`pip install '.[serve,tables]'`, or `pip install .`; then pip install other."
    config = {"extra": {"published": published}}
    named = text.replace("'.[serve", "'rankfold[serve").replace("install .`", "install rankfold`")
    made = installing.on_page_markdown(text, config=config, page=None, files=None)
    assert made == (named if published else text)


def test_no_page_installs_by_name_what_is_not_published():
    for path in [*DOCS.rglob("*.md"), DOCS.parent / "README.md"]:
        text = path.read_text()
        assert "pip install 'rankfold" not in text, path
        assert "rankfold[" not in text, path

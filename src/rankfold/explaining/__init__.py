"""Why a result has its place."""

from rankfold.explaining.explain import explain
from rankfold.explaining.explanation import Example, Explanation, Path, Step
from rankfold.explaining.picture import draw_explanation

__all__ = ["Example", "Explanation", "Path", "Step", "draw_explanation", "explain"]

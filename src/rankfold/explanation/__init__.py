"""Why a result has its place."""

from rankfold.explanation.explain import explain
from rankfold.explanation.explanation import Example, Explanation, Path, Step
from rankfold.explanation.picture import draw_explanation

__all__ = ["Example", "Explanation", "Path", "Step", "draw_explanation", "explain"]

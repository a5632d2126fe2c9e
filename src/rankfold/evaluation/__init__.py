"""Methods measured side by side: tables with intervals, tuning, and TREC files."""

from rankfold.evaluation.depths import DepthGain
from rankfold.evaluation.formats import Row
from rankfold.evaluation.results import Evaluation
from rankfold.evaluation.run import evaluate
from rankfold.evaluation.runs import evaluate_runs, make_qrels, make_run
from rankfold.evaluation.trec import read_qrels, read_run, write_qrels, write_run
from rankfold.evaluation.tuning import Tuning, tune
from rankfold.types import SearchCollection

__all__ = [
    "DepthGain",
    "Evaluation",
    "Row",
    "SearchCollection",
    "Tuning",
    "evaluate",
    "evaluate_runs",
    "make_qrels",
    "make_run",
    "read_qrels",
    "read_run",
    "tune",
    "write_qrels",
    "write_run",
]

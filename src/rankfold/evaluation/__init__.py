"""Methods measured side by side: tables with intervals, tuning, and TREC files."""

from rankfold.evaluation.results import DepthGain, Evaluation, Row
from rankfold.evaluation.run import evaluate
from rankfold.evaluation.trec import (
    evaluate_runs,
    make_qrels,
    make_run,
    read_qrels,
    read_run,
    write_qrels,
    write_run,
)
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

"""Turns runs into the tables of PyTerrier, and back."""

from rankfold import RAN, datasets
from rankfold.evaluation import make_run
from rankfold.integrations.pyterrier import frame_to_run, run_to_frame

ranker = RAN(10).fit(datasets.load("moons").X)
run = make_run([0, 1], ranker.rank_many([0, 1], top=5))
frame = run_to_frame(run)
assert list(frame.columns) == ["qid", "docno", "score", "rank"]
assert frame_to_run(frame) == run

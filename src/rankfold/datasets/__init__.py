"""Data sets by name."""

from rankfold.datasets.loading import DATASETS, load

__all__ = ["DATASETS", "load"]

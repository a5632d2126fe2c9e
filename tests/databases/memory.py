"""The database of the docs, over a dictionary of points that a test changes as a user would."""

import json

import numpy as np
from sources.array_collection import ArrayCollection

from rankfold.databases.backend import MANIFEST


class MemoryCollection(ArrayCollection):
    """Points by key, in memory; a filter is a function of a point's payload."""

    def __init__(self, points, payload=None, metric="euclidean"):
        fields = [(payload or {}).get(key, {}) for key in points]
        super().__init__(list(points), np.array([*points.values()]), fields, metric)

    def put(self, points):
        """Add points, or replace them."""
        self.points |= points
        self.fields |= {key: {} for key in points if key not in self.fields}

    @property
    def stored(self):
        """All rows by key."""
        return {row.key: row for rows in self.scan_rows() for row in rows}

    @property
    def manifest(self):
        return json.loads(self.records[MANIFEST]["edges"])

"""The graph that an index learns for all queries, and how far that came when it was stopped."""

from __future__ import annotations

import json
import re
import zlib
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from stat import S_ISREG
from typing import Any

import numpy as np

from rankfold.files import replacing
from rankfold.graph.collective import Learning, Stage, learning_of
from rankfold.neighbors import DynamicEngine, Learned, Round
from rankfold.storage import Version
from rankfold.types import Neighbors

STAGE = "learning.npz"
"""The file beside the store that a stopped learning goes on from."""

PARTIAL = re.compile(rf"\.{re.escape(STAGE)}\.\d+-[0-9a-f]{{8}}\.partial")
"""What `replacing` calls it while it is written."""

ROOM = 2**16
"""Bytes that its description and the frame of the file may take."""


def learned_graph(
    engine: DynamicEngine,
    n_neighbors: int,
    smoothness: float,
    folder: Path,
    version: Version,
    progress: bool,
) -> Learned:
    """Learn a graph for all points of an engine; go on where the same was stopped before.

    Parameters
    ----------
    engine : DynamicEngine
        Without removed slots.
    n_neighbors : int
        Neighbours in the plain graph.
    smoothness : float
        That of the queries that will be asked.
    folder : Path
        Of the store, where stages are kept.
    version : Version
        The state of the store that the engine holds.
    progress : bool
        Whether to show a bar on stderr.
    """
    chosen = min(n_neighbors, max(1, engine.n_alive - 2))
    learning = learning_of(engine, chosen, smoothness, progress=progress)
    stages = Stages.of(folder, learning, version)
    return replace(learning, keep=stages.write).run(stages.read())


@dataclass(frozen=True)
class Stages:
    """Keeps the last stage of a learning in a file, which nobody else writes meanwhile.

    Parameters
    ----------
    path : Path
    state : dict
        What a stage belongs to, as JSON can hold it; stages of another are ignored.
    shape : tuple of int
        That of the candidates.
    """

    path: Path
    state: dict[str, Any]
    shape: tuple[int, ...]

    @classmethod
    def of(cls, folder: Path, learning: Learning, version: Version) -> Stages:
        """Return the stages of a learning in a state of a store."""
        state = {
            "generation": version.generation,
            "sequence": version.sequence,
            "n_neighbors": learning.n_neighbors,
            "smoothness": float(learning.smoothness),
            "attempts": [list(attempt) for attempt in learning.attempts],
            "weight": learning.weight,
            "profile_smoothness": learning.profile_smoothness,
            "profile_tol": learning.profile_tol,
            "candidates": _checksum(learning.candidates),
        }
        return cls(folder / STAGE, state, learning.candidates.indices.shape)

    def write(self, stage: Stage) -> None:
        """Put a stage into the place of the one before."""
        rounds = [asdict(made) for made in stage.rounds]
        text = json.dumps({"state": self.state, "attempt": stage.attempt, "rounds": rounds})
        described = np.frombuffer(text.encode(), dtype=np.uint8)
        with replacing(self.path) as partial, partial.open("wb") as file:
            np.savez(file, described=described, lifted=stage.lifted)

    def read(self) -> Stage | None:
        """Return the stage to go on from; sweep what is left of any other."""
        try:
            stage = self._read()
        except Exception:  # a file that is damaged or not ours raises almost anything
            stage = None
        if stage is None:
            sweep(self.path.parent)
        return stage

    def _read(self) -> Stage | None:
        found = self.path.lstat()  # a link is none of ours, and what is no file may never end
        most = 8 * int(np.prod(self.shape)) + ROOM
        if not S_ISREG(found.st_mode) or found.st_size > most:
            return None
        with self.path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            if sum(part.file_size for part in archive.zip.infolist()) > most:  # once unpacked
                return None
            described = json.loads(archive["described"].tobytes())
            if described["state"] != self.state:
                return None
            lifted = archive["lifted"]
        attempt = described["attempt"]
        rounds = tuple(Round(**made) for made in described["rounds"])
        fits = lifted.shape == self.shape and lifted.dtype == np.float64 and (lifted >= 0).all()
        known = isinstance(attempt, int) and attempt in range(len(self.state["attempts"]))
        if not (fits and known):
            return None
        return Stage(attempt, lifted, rounds)


def _checksum(lists: Neighbors) -> int:
    """Sum up lists: a search that is not exact may find others in the same state of a store."""
    found = zlib.crc32(np.ascontiguousarray(lists.indices).data)
    return zlib.crc32(np.ascontiguousarray(lists.sq_distances).data, found)


def sweep(folder: Path) -> None:
    """Delete a stage, and what a process that was killed left behind while it wrote one.

    Folders, links and files of other names are left alone.
    """
    for left in (folder / STAGE, *folder.glob(f".{STAGE}.*.partial")):
        named = left.name == STAGE or PARTIAL.fullmatch(left.name)
        if named and left.is_file() and not left.is_symlink():
            left.unlink(missing_ok=True)

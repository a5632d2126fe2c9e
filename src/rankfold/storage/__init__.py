"""Named arrays, ids and payload on disk: safe against crashes, one writer, many readers."""

from rankfold.storage.database import Version
from rankfold.storage.store import Store

__all__ = ["Store", "Version"]

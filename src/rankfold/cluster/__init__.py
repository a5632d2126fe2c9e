"""Heavy work on a Dask cluster: an index of shards larger than memory, and many rankings."""

from rankfold.cluster.build import Built, build_index
from rankfold.cluster.ranking import Rankings, rank_many

__all__ = ["Built", "Rankings", "build_index", "rank_many"]

"""Indexes in Milvus: a cluster, a server, or the file of Milvus Lite."""

from rankfold.databases.milvus.database import Milvus

__all__ = ["Milvus"]

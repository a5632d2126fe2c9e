"""Indexes that lie in a database: PostgreSQL with pgvector, or Milvus."""

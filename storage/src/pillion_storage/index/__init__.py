"""Approximate vector search. An index is never the truth: it can be rebuilt from the store."""

from __future__ import annotations

from pillion_storage.index.hnsw import HnswIndex, SearchResult

__all__ = ["HnswIndex", "SearchResult"]

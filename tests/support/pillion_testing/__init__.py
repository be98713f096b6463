"""Builders and fakes that tests share: time, ids, an embedder, a whole service."""

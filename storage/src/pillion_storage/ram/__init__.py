"""The in-memory reference store: the semantics of ``api`` in the plainest possible code."""

from pillion_storage.ram.store import RamStore, open_store

__all__ = ["RamStore", "open_store"]

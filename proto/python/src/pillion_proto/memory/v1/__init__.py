"""Stubs of pillion.memory.v1."""

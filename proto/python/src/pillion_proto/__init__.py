"""Stubs generated from the Pillion contract."""

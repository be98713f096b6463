"""Concurrent histories of a real server that is killed: made, kept, accounted for and checked."""

"""JSON Schema by a library: the one place that knows it."""

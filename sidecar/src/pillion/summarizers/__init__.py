"""Built-in summarizers, found by entry point (group `pillion.summarizers`, docs/plugins.md)."""

"""Built-in embedders. They are found by entry point, like anybody else's (docs/plugins.md)."""

# Generated from _async/__init__.py by scripts/gen_sync_client.py (`make gen`). Do not edit.
"""The blocking client."""

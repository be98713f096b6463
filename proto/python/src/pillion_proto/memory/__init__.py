"""The contract by version."""

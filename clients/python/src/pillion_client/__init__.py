"""Python client of the Pillion memory sidecar."""

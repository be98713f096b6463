"""The client's own limits; the server publishes its limits through ``info()``."""

from __future__ import annotations

from typing import Final

MESSAGE_BYTES_MAX: Final = 16 * 1024 * 1024
"""Bytes of one message, each way. The server has the same number; a hop with less breaks calls."""

SOCKET_PATH_BYTES_MAX: Final = 107
"""Bytes of a Unix socket's path: Linux has room for 108, one of which ends the path."""

IMPORT_BATCH_ITEMS_MAX: Final = 100
"""Items of one import batch: the contract's number."""

IMPORT_BATCH_BYTES_MAX: Final = 4 * 1024 * 1024
"""Bytes of one import batch: small enough to be committed and acknowledged in well under a second,
and four times smaller than a message may be, so that one large item never breaks a batch."""

IMPORT_UNACKNOWLEDGED_MAX: Final = 4
"""Import batches on their way at once: enough to keep a server busy while acknowledgements travel,
few enough that a slow one holds at most 16 MiB of ours."""

UPDATE_ATTEMPTS_MAX: Final = 8
"""How often ``update_fact`` begins, before it gives up on a key that others keep changing."""

"""How an embedder fails, by what the caller can do about it.

EmbedderError
├── EmbedderMisconfigured   an operator must act; trying again does not help
├── EmbedderUnavailable     the same call may succeed later
└── EmbedderInputRejected   these texts will never be accepted; others may be
"""

from __future__ import annotations


class EmbedderError(Exception):
    """Any failure of an embedder. Messages never contain the texts or a secret."""


class EmbedderMisconfigured(EmbedderError):  # noqa: N818 - it names the state an operator must fix
    """An option, a package, a file or a credential is missing or wrong."""


class EmbedderUnavailable(EmbedderError):  # noqa: N818 - it names the state that may pass
    """The embedder cannot answer now.

    `retry_after_ms` is what the provider asked for, None when it said nothing.
    """

    def __init__(self, message: str, *, retry_after_ms: int | None = None) -> None:
        super().__init__(message)
        self.retry_after_ms = retry_after_ms


class EmbedderInputRejected(EmbedderError):  # noqa: N818 - one family, one way of naming
    """The provider refused these texts, for example because one is too long for its model."""

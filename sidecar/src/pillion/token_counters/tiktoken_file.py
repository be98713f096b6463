"""Exact counts by tiktoken, from a vocabulary file that the operator names.

tiktoken by itself fetches vocabularies from the network; here nothing is ever fetched. The file is
in tiktoken's own format: a line for each token, its bytes in base64 and its rank.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from pathlib import Path  # noqa: TC003  (pydantic reads it)
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pillion.token_counters.errors import CounterMisconfiguredError, CounterNotConfiguredError

if TYPE_CHECKING:
    from collections.abc import Mapping

# The hash that is published of o200k_base: with any other file the counts would be of no model.
O200K_SHA256: Final = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
BYTE_VALUES: Final = 256
# How o200k_base cuts a text into the pieces within which its merges apply: words with one leading
# space or sign and an English ending, up to three digits, signs, and white space.
_UPPER: Final = r"\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}"
_LOWER: Final = r"\p{Ll}\p{Lm}\p{Lo}\p{M}"
_ENDING: Final = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
PIECES: Final = "|".join(
    (
        rf"[^\r\n\p{{L}}\p{{N}}]?[{_UPPER}]*[{_LOWER}]+{_ENDING}",
        rf"[^\r\n\p{{L}}\p{{N}}]?[{_UPPER}]+[{_LOWER}]*{_ENDING}",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    )
)


class TiktokenOptions(BaseModel):
    """Where the vocabulary is, and what its bytes must hash to."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    file: Annotated[Path, Field(description="The vocabulary, in tiktoken's format.")]
    sha256: Annotated[
        str, Field(pattern=r"^[0-9a-f]{64}$", description="The file's hash; another is refused.")
    ] = O200K_SHA256


class TiktokenCounter:
    """Counts with one vocabulary. What looks like a special token is counted as mere text."""

    estimates: Final = False

    def __init__(self, encoding: Any) -> None:  # noqa: ANN401  (of an optional package)
        self._encoding = encoding

    def count(self, text: str) -> int:
        """Return the tokens of a text."""
        return len(self._encoding.encode_ordinary(text))


def create(options: Mapping[str, object]) -> TiktokenCounter:
    """Return the counter.

    Raises:
        CounterNotConfiguredError: No option names a file.
        CounterMisconfiguredError: An option is wrong, the file is not the vocabulary, or the
            package is not installed.
    """
    if not options:
        raise CounterNotConfiguredError("it needs the option file: a vocabulary")
    try:
        chosen = TiktokenOptions.model_validate(dict(options))
    except ValidationError as error:
        wrong = sorted({".".join(map(str, problem["loc"])) for problem in error.errors()})
        raise CounterMisconfiguredError(f"wrong options: {', '.join(wrong)}") from None
    ranks = read_vocabulary(chosen)
    try:
        import tiktoken
    except ImportError:
        message = "the package is not installed: pip install 'pillion[tiktoken]'"
        raise CounterMisconfiguredError(message) from None
    encoding = tiktoken.Encoding(
        name="o200k_base_from_file", pat_str=PIECES, mergeable_ranks=ranks, special_tokens={}
    )
    return TiktokenCounter(encoding)


def read_vocabulary(chosen: TiktokenOptions) -> dict[bytes, int]:
    """Return the tokens of a vocabulary file, each with its rank.

    Raises:
        CounterMisconfiguredError: It cannot be read, is another file, or no vocabulary.
    """
    try:
        data = chosen.file.read_bytes()
    except OSError as error:
        raise CounterMisconfiguredError(f"file: it cannot be read: {error.strerror}") from None
    if hashlib.sha256(data).hexdigest() != chosen.sha256:
        raise CounterMisconfiguredError("file: its hash is not that of o200k_base, or of sha256")
    try:
        pairs = (line.split() for line in data.splitlines() if line)
        ranks = {base64.b64decode(token, validate=True): int(rank) for token, rank in pairs}
    except (ValueError, binascii.Error):
        raise CounterMisconfiguredError("file: it is not in tiktoken's format") from None
    single = sum(len(token) == 1 for token in ranks)
    if single < BYTE_VALUES or len(set(ranks.values())) < len(ranks):
        raise CounterMisconfiguredError("file: it lacks single bytes, or gives a rank twice")
    return ranks

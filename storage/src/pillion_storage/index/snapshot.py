"""A graph in a file: written whole or not at all, and never believed on reading.

    prefix   magic(8) format(u16) sealed(u8) 0(u8) parts(u32) file id(16)
    part     length(u32), then that many bytes: sealed, or plain with a digest of 16 bytes behind

Integers are big-endian, those in arrays little-endian.

Part 0 is the header, a MessagePack map (`Manifest`); the others are the arrays one after another,
1 MiB each. Each part is bound to the prefix and to its number, by the seal or by the digest: parts
can't change places, come from another file, or be missing at the end. A digest finds accidents; it
is no protection against somebody who can write the file (that is what sealing is for).

The file is a cache. Whatever is wrong with it is a `SnapshotUnusable`, and the graph is built anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import stat
import struct
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast

import msgpack
import numpy as np

from pillion_storage.errors import StoreError
from pillion_storage.files import sync_directory
from pillion_storage.index.graph_state import GraphState, SnapshotUnusable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from typing import BinaryIO

    from numpy.typing import NDArray

    Seal = Callable[[bytes | memoryview, bytes], bytes]
    Open = Callable[[bytes, bytes], bytes | None]

FORMAT: Final = 1
PART_BYTES: Final = 1 << 20
ID_BYTES: Final = 16
_MAGIC: Final = b"PILLHNSW"
_PREFIX: Final = struct.Struct(">8sHBxI16s")
_LENGTH: Final = struct.Struct(">I")
_NUMBER: Final = struct.Struct(">I")
_DIGEST_BYTES: Final = 16
# What sealing may add to a part, with room to spare; and the most that a header takes.
_OVERHEAD_MAX: Final = 256
_HEADER_BYTES_MAX: Final = 1 << 16
_DRAFT_SUFFIX: Final = ".new"


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a snapshot says of itself.

    Attributes:
        namespace, tenant: The partition.
        space: The embedder's name, version, fingerprint; vectors of others can't be compared.
        dimension: Components of a vector.
        live: Vectors that can be found.
        count: Nodes, deleted ones too.
        revision: Every change up to it is in the graph; some later ones may be.
        recorded_at: When that revision was recorded: another history has another time there.
        hnswlib: The version of hnswlib.
        max_level, entry: See `GraphState`.
        layout: See `GraphState`.
        upper_bytes: How long the upper floors are.
        recall: What was measured, as rows of k, ef and the share found.
    """

    namespace: str
    tenant: str
    space: list[str]
    dimension: int
    live: int
    count: int
    revision: int
    recorded_at: int
    hnswlib: str
    max_level: int
    entry: int
    layout: dict[str, Any]
    upper_bytes: int
    recall: list[list[float]] = field(default_factory=list)


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """A graph, and what it is of. `ids` has 16 bytes for each node; zeros: it is deleted."""

    manifest: Manifest
    ids: NDArray[np.uint8]
    state: GraphState


def write(
    path: Path, snapshot: Snapshot, seal: Seal | None, go_on: Callable[[], bool] = lambda: True
) -> bool:
    """Put a snapshot where `path` is, atomically; False: `go_on` said no, and nothing changed.

    Raises:
        OSError: it can't be written; what was there is there.
    """
    body = _Body.of(snapshot)
    header = cast("bytes", msgpack.packb(asdict(snapshot.manifest), use_bin_type=True))
    prefix = _PREFIX.pack(
        _MAGIC, FORMAT, seal is not None, 1 + body.parts, secrets.token_bytes(ID_BYTES)
    )
    draft = path.with_name(path.name + _DRAFT_SUFFIX)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(draft, flags, 0o600), "wb") as file:
            file.write(prefix)
            _write_part(file, header, prefix, 0, seal)
            for number, part in enumerate(body.cut(), 1):
                if not go_on():
                    _remove(draft)
                    return False
                _write_part(file, part, prefix, number, seal)
            file.flush()
            os.fsync(file.fileno())
        draft.rename(path)
    except BaseException:
        _remove(draft)
        raise
    sync_directory(path.parent)
    return True


def read(
    path: Path,
    layout: dict[str, Any],
    opened: Open | None,
    accept: Callable[[Manifest], None],
) -> Snapshot | None:
    """Read a snapshot; None: there is none. The state is not checked yet: see `GraphState.check`.

    Args:
        path: The file.
        layout: What its layout must be; see `layout_of`.
        opened: Opens a part; None: it must be plain.
        accept: Looks at the manifest before the rest is read; raises SnapshotUnusable.

    Raises:
        SnapshotUnusable: it is damaged, of another format, not sealed as it should be, sealed
            with a key that is gone, or not accepted.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SnapshotUnusable(f"it can't be read: {error.strerror}") from None
    told = os.fstat(descriptor)
    if not stat.S_ISREG(told.st_mode):
        os.close(descriptor)
        raise SnapshotUnusable("it is no file")
    with os.fdopen(descriptor, "rb") as file:
        try:
            return _read(file, told.st_size, layout, opened, accept)
        except (OSError, StoreError) as error:
            raise SnapshotUnusable(str(error)) from error


def _read(
    file: BinaryIO,
    size: int,
    layout: dict[str, Any],
    opened: Open | None,
    accept: Callable[[Manifest], None],
) -> Snapshot:
    prefix = file.read(_PREFIX.size)
    if len(prefix) < _PREFIX.size or not prefix.startswith(_MAGIC):
        raise SnapshotUnusable("it is no snapshot")
    _, found, sealed, parts, _ = _PREFIX.unpack(prefix)
    if found != FORMAT:
        raise SnapshotUnusable(f"it has format {found}, this version reads {FORMAT}")
    if bool(sealed) is not (opened is not None):
        raise SnapshotUnusable("it is plain" if opened is not None else "it is encrypted")
    manifest = _manifest(_read_part(file, prefix, 0, opened, _HEADER_BYTES_MAX))
    accept(manifest)
    if manifest.layout != layout:
        differing = [name for name in layout if manifest.layout.get(name) != layout[name]]
        raise SnapshotUnusable(f"it was made by another build or setting: {', '.join(differing)}")
    body = _Body.sized(manifest, size)
    if parts != 1 + body.parts:
        raise SnapshotUnusable("its parts do not fit its header")
    for number, part in enumerate(body.cut(), 1):
        data = _read_part(file, prefix, number, opened, len(part))
        if len(data) != len(part):
            raise SnapshotUnusable(f"part {number} has another length")
        part[:] = data
    if file.read(1):
        raise SnapshotUnusable("something follows its last part")
    return body.snapshot(manifest)


class _Body:
    """The arrays of a snapshot, one after another."""

    def __init__(self, *arrays: NDArray[Any]) -> None:
        self._arrays = arrays

    @classmethod
    def of(cls, snapshot: Snapshot) -> _Body:
        state = snapshot.state
        arrays = (snapshot.ids, state.levels.astype("<i4"), state.level0, state.upper)
        return cls(*(np.ascontiguousarray(one) for one in arrays))

    @classmethod
    def sized(cls, manifest: Manifest, file_bytes: int) -> _Body:
        """Room for what a manifest tells of; no more than the file could hold."""
        row_bytes = int(manifest.layout["size_data_per_element"])
        count, upper = manifest.count, manifest.upper_bytes
        if (
            min(count, row_bytes, upper) < 0
            or count * (ID_BYTES + 4 + row_bytes) + upper > file_bytes
        ):
            raise SnapshotUnusable("it is shorter than its header says")
        return cls(
            np.empty((count, ID_BYTES), np.uint8),
            np.empty(count, "<i4"),
            np.empty((count, row_bytes), np.uint8),
            np.empty(upper, np.uint8),
        )

    @property
    def parts(self) -> int:
        return sum(-(-array.nbytes // PART_BYTES) for array in self._arrays)

    def cut(self) -> Iterator[memoryview]:
        for array in self._arrays:
            if array.nbytes:
                whole = memoryview(array.reshape(-1).view(np.uint8).data)
                for start in range(0, len(whole), PART_BYTES):
                    yield whole[start : start + PART_BYTES]

    def snapshot(self, manifest: Manifest) -> Snapshot:
        ids, levels, level0, upper = self._arrays
        state = GraphState(
            count=manifest.count,
            max_level=manifest.max_level,
            entry=manifest.entry,
            layout=manifest.layout,
            level0=level0,
            levels=levels.astype(np.int32, copy=False),
            upper=upper,
        )
        return Snapshot(manifest, ids, state)


def _manifest(data: bytes) -> Manifest:
    try:
        made = Manifest(**msgpack.unpackb(data, strict_map_key=True))
    except (ValueError, TypeError, msgpack.UnpackException) as error:
        raise SnapshotUnusable(f"its header is not readable: {type(error).__name__}") from None
    numbers = [made.dimension, made.live, made.count, made.revision, made.recorded_at]
    numbers += [made.max_level, made.entry, made.upper_bytes]
    if not all(type(one) is int for one in numbers) or type(made.layout) is not dict:
        raise SnapshotUnusable("its header is misshapen")
    return made


def _write_part(
    file: BinaryIO, part: bytes | memoryview, prefix: bytes, number: int, seal: Seal | None
) -> None:
    place = prefix + _NUMBER.pack(number)
    data = bytes(part) + _digest(part, place) if seal is None else seal(part, place)
    file.write(_LENGTH.pack(len(data)))
    file.write(data)


def _read_part(
    file: BinaryIO, prefix: bytes, number: int, opened: Open | None, bytes_max: int
) -> bytes:
    place = prefix + _NUMBER.pack(number)
    length_bytes = file.read(_LENGTH.size)
    length = _LENGTH.unpack(length_bytes)[0] if len(length_bytes) == _LENGTH.size else -1
    if not 0 <= length <= bytes_max + _OVERHEAD_MAX:
        raise SnapshotUnusable(f"part {number} is missing or has another length")
    data = file.read(length)
    if len(data) != length:
        raise SnapshotUnusable(f"part {number} is cut short")
    if opened is not None:
        plain = opened(data, place)
        if plain is None:
            raise SnapshotUnusable("its key was destroyed")
        return plain
    plain = data[:-_DIGEST_BYTES]
    if _digest(plain, place) != data[len(plain) :]:
        raise SnapshotUnusable(f"part {number} is damaged")
    return plain


def _digest(part: bytes | memoryview, place: bytes) -> bytes:
    state = hashlib.blake2b(place, digest_size=_DIGEST_BYTES)
    state.update(part)
    return state.digest()


def forget(path: Path) -> None:
    """Overwrite and remove a snapshot and what a stop left of one. Missing files are no error.

    Raises:
        OSError: it is still there.
    """
    for one in (path, path.with_name(path.name + _DRAFT_SUFFIX)):
        with contextlib.suppress(FileNotFoundError):
            # A file of zeros where the old one was, as far as the file system writes in place.
            with os.fdopen(os.open(one, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "wb") as file:
                for _ in range(-(-os.fstat(file.fileno()).st_size // PART_BYTES)):
                    file.write(bytes(PART_BYTES))
                file.flush()
                os.fsync(file.fileno())
            one.unlink()
    if path.parent.is_dir():
        sync_directory(path.parent)


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()

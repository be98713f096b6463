"""The contract's enumerations as lower-case strings, so that ``kind="episodic"`` is enough.

Members have the contract's names without the prefix. ``UNSPECIFIED`` in a request means the
server's default; in an answer it stands for a value that this client is too old to know.
"""

from __future__ import annotations

from enum import StrEnum


class MemoryKind(StrEnum):
    """What kind of memory it is. It decides the default half-life."""

    UNSPECIFIED = "unspecified"
    EPISODIC = "episodic"
    SEMANTIC = "semantic"
    PROCEDURAL = "procedural"
    SESSION = "session"
    OPEN_ITEM = "open_item"


class MemoryStatus(StrEnum):
    """How far a memory is established."""

    UNSPECIFIED = "unspecified"
    CANDIDATE = "candidate"
    STATED = "stated"
    CONFIRMED = "confirmed"


class SourceKind(StrEnum):
    """Where a statement came from."""

    UNSPECIFIED = "unspecified"
    USER_STATEMENT = "user_statement"
    USER_CONFIRMATION = "user_confirmation"
    TOOL_RESULT = "tool_result"
    DOCUMENT = "document"
    INFERENCE = "inference"
    CONSOLIDATION = "consolidation"


class ConflictPolicy(StrEnum):
    """What to do when two statements of one key begin at the same instant and differ."""

    UNSPECIFIED = "unspecified"
    REJECT = "reject"
    PREFER_SOURCE = "prefer_source"
    CORRECT = "correct"


class ChangeKind(StrEnum):
    """What a commit did to a record."""

    UNSPECIFIED = "unspecified"
    CREATED = "created"
    UPDATED = "updated"
    REMOVED = "removed"


class EmbeddingMode(StrEnum):
    """When the vectors that the server makes must be there."""

    UNSPECIFIED = "unspecified"
    QUEUED = "queued"
    INLINE = "inline"


class EpisodeIndexing(StrEnum):
    """Whether an episode can be recalled."""

    UNSPECIFIED = "unspecified"
    INDEXED = "indexed"
    SOURCE_ONLY = "source_only"


class ExtractionMode(StrEnum):
    """When facts are extracted from an episode."""

    UNSPECIFIED = "unspecified"
    NONE = "none"
    QUEUED = "queued"
    INLINE = "inline"


class MutationOutcome(StrEnum):
    """What became of a mutation."""

    UNSPECIFIED = "unspecified"
    CREATED = "created"
    SUPERSEDED = "superseded"
    INSERTED = "inserted"
    EVIDENCE = "evidence"
    CORRECTED = "corrected"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    KEPT_EXISTING = "kept_existing"


class ValidityFilter(StrEnum):
    """How a memory's validity interval takes part in a filter."""

    UNSPECIFIED = "unspecified"
    VALID_NOW = "valid_now"
    ANY = "any"


class RecencyAnchor(StrEnum):
    """From when recency counts."""

    UNSPECIFIED = "unspecified"
    VALID_FROM = "valid_from"
    LAST_USED = "last_used"


class OlderStatements(StrEnum):
    """What becomes of older statements of the same thing in a search."""

    UNSPECIFIED = "unspecified"
    FOLLOW = "follow"
    FOLD = "fold"


class Exactness(StrEnum):
    """Whether a search's answer is the true top-k."""

    UNSPECIFIED = "unspecified"
    EXACT = "exact"
    CERTIFIED = "certified"
    APPROXIMATE = "approximate"


class SearchPath(StrEnum):
    """Which way the server's planner took."""

    UNSPECIFIED = "unspecified"
    SCAN = "scan"
    INDEX = "index"
    NO_VECTOR = "no_vector"


class RecallPurpose(StrEnum):
    """What a context is for."""

    UNSPECIFIED = "unspecified"
    TURN = "turn"
    SESSION_START = "session_start"


class RecallSection(StrEnum):
    """A section of a context, in the order in which they come."""

    UNSPECIFIED = "unspecified"
    PROCEDURES = "procedures"
    FACTS = "facts"
    OPEN_ITEMS = "open_items"
    SESSIONS = "sessions"
    RELATED = "related"


class EdgeDirection(StrEnum):
    """Which way along an edge: from a subject to its values, from values to subjects, or both."""

    UNSPECIFIED = "unspecified"
    OUT = "out"
    IN = "in"
    BOTH = "both"


class ForgetMode(StrEnum):
    """How to forget: out of recall, no longer held to be so, or gone for good."""

    UNSPECIFIED = "unspecified"
    EXPIRE = "expire"
    RETRACT = "retract"
    ERASE = "erase"


class OperationState(StrEnum):
    """Where an operation is."""

    UNSPECIFIED = "unspecified"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


class ClusterSkipReason(StrEnum):
    """Why consolidation leaves a cluster alone."""

    UNSPECIFIED = "unspecified"
    LOSES_DETAILS = "loses_details"
    CHANGED = "changed"
    TOO_SMALL = "too_small"


class Cardinality(StrEnum):
    """How many values a key may have at one instant."""

    UNSPECIFIED = "unspecified"
    ONE = "one"
    SET = "set"


class ExistingValues(StrEnum):
    """What becomes of a registration when values that are held now do not fit it."""

    UNSPECIFIED = "unspecified"
    MUST_FIT = "must_fit"
    MAY_DIFFER = "may_differ"


class ValueType(StrEnum):
    """What a value is converted to by a migration."""

    UNSPECIFIED = "unspecified"
    STRING = "string"
    INT = "int"
    DOUBLE = "double"
    BOOL = "bool"
    TIME = "time"

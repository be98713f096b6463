"""Every limit of the product, each with its reason. Reaching one gives a clear error."""

from __future__ import annotations

from typing import Final

# One message each way. Large enough for 100 mutations of text and vector, small enough that a
# few of them at once cannot exhaust a small pod.
MESSAGE_BYTES_MAX: Final = 16 * 1024 * 1024
# A Write is one transaction; at this size it still takes single-digit milliseconds.
MUTATIONS_MAX: Final = 100
GUARDS_MAX: Final = 100
# What the records and index rows of one Write may come to: the store's own bound on a commit, which
# every engine considered can keep; see docs/data-file.md.
WRITE_BYTES_MAX: Final = 4 * 1024 * 1024
BATCH_GET_MAX: Final = 100
# A record must fit the store's 64 KiB values with room for its other fields.
TEXT_BYTES_MAX: Final = 32 * 1024
VALUE_BYTES_MAX: Final = 16 * 1024
QUERY_BYTES_MAX: Final = 8 * 1024
# What a turn lends its followers to be found by, in characters: a long document before a short
# answer must not take the index over.
BORROWED_CHARACTERS_MAX: Final = 1000
QUOTE_BYTES_MAX: Final = 4 * 1024
AUTHOR_BYTES_MAX: Final = 256
NAME_BYTES_MAX: Final = 128  # namespace, tenant, attribute, session, retention class
SUBJECT_TYPE_BYTES_MAX: Final = 64
SUBJECT_ID_BYTES_MAX: Final = 256
CONTEXT_BYTES_MAX: Final = 64
EXTERNAL_REF_BYTES_MAX: Final = 256
LABELS_MAX: Final = 32
LABEL_BYTES_MAX: Final = 128
PII_LABELS_MAX: Final = 16
PII_LABEL_BYTES_MAX: Final = 64
DERIVED_FROM_MAX: Final = 256
# Evidence beyond these episodes is counted and no longer listed.
RECURRENCE_EPISODES_MAX: Final = 64
# So many distinct episodes that state a candidate make it CONFIRMED: two may copy each other.
PROMOTE_AFTER_DEFAULT: Final = 3
DIMENSION_MAX: Final = 4096
# From how many vectors of a partition an approximate index pays; measured, see docs/adr/0006.
INDEX_FROM_DEFAULT: Final = 150_000
REQUEST_ID_BYTES_MAX: Final = 64
# Beyond this a caller wants List or Export; the whole answer must fit one message.
RESULTS_MAX: Final = 1000
# Candidates beyond the answer that are looked at for a later statement of what is in it, and the
# fewest among which a diverse answer is chosen: their memories are decoded, their vectors compared.
WINDOW_MORE_MIN: Final = 10
DIVERSITY_WINDOW_MIN: Final = 64
# How far they are followed where repeated statements fill most of them.
WINDOW_MAX: Final = 512
# The same where they are the records of a series, which seldom have a later statement at all.
SERIES_WINDOW_MAX: Final = 128
# Candidates that a trace tells of; the contract's own number.
TRACE_CANDIDATES_MAX: Final = 200
PAGE_SIZE_DEFAULT: Final = 50
PAGE_SIZE_MAX: Final = 1000
HISTORY_PAGE_DEFAULT: Final = 100
# A page ends early where its records come to this: a quarter of a message, so that whatever
# they hold beside their texts fits too.
PAGE_BYTES_MAX: Final = 4 * 1024 * 1024
# A context of more than this no model takes, and with so many tokens it still fits one message.
RECALL_TOKENS_MAX: Final = 1_000_000
RECALL_SUBJECTS_MAX: Final = 16
# What of a Recall is chosen by rank: the best of these are looked at.
RECALL_RELATED_MAX: Final = 50
RECALL_PROCEDURES_MAX: Final = 20
# Untyped statements beside the facts of a profile, and summaries: what a person would skim.
RECALL_PROFILE_STATEMENTS_MAX: Final = 20
RECALL_SESSIONS_TURN: Final = 3
RECALL_SESSIONS_START: Final = 5
# Current facts, or open items, of the subjects of one Recall: all are candidates, and each is named
# in the answer. Reading so many takes about a second.
RECALL_STANDING_MAX: Final = 20_000
# Beyond three edges nearly everything is connected with everything.
GRAPH_DEPTH_MAX: Final = 3
GRAPH_DEPTH_DEFAULT: Final = 1
GRAPH_FAN_OUT_MAX: Final = 100
GRAPH_FAN_OUT_DEFAULT: Final = 20
GRAPH_ATTRIBUTES_MAX: Final = 32
# Subjects of a search's best hits from which its expansion walks: what one search for edges takes.
EXPANSION_STARTS_MAX: Final = 64
# Each edge of an answer ends a path of up to three: about a kilobyte.
GRAPH_EDGES_MAX: Final = 1000
GRAPH_EDGES_DEFAULT: Final = 100
FILTER_SUBJECTS_MAX: Final = 64
FILTER_CONTEXTS_MAX: Final = 16
# Filters within filters: levels, and how many in all. Each is asked of every memory.
FILTER_LEVELS_MAX: Final = 4
FILTER_CONDITIONS_MAX: Final = 64
# What one Forget in the background selects: its ids are kept with it until its end.
FORGET_BACKGROUND_MAX: Final = 200_000
FORGET_IDS_MAX: Final = 100
CLASSES_MAX: Final = 64  # retention classes: a sweep goes through the records for each
FORGET_SAMPLE_MAX: Final = 100
REASON_CODE_BYTES_MAX: Final = 64  # a code of the caller's, for receipts and logs
IMPORT_BATCH_MAX: Final = 100
# Memories of one subject that a single Consolidate looks at: clustering is quadratic in it.
CONSOLIDATE_MEMORIES_MAX: Final = 2000
CLUSTER_SIZE_DEFAULT: Final = 3
CLUSTER_SIZE_MIN: Final = 2
CLUSTER_SIZE_MAX: Final = 100
SKIPPED_CLUSTERS_MAX: Final = 100
CLUSTER_IDS_MAX: Final = 64
# Entries of a timeline that one statement may have to be compared with: those within its interval,
# up to the first that names no end. Reading so many takes some tens of milliseconds.
TIMELINE_WALK_MAX: Final = 20_000
# Entries of a timeline that one look goes through. Only evidence asleep is passed over in numbers,
# behind a retraction of a fact that was stated very often; so many take about a second.
TIMELINE_READ_MAX: Final = 100_000
# A write whose records changed under it is planned again at most this often.
COMMIT_TRIES_MAX: Final = 16
# An open stream holds one of few threads, so one from which nothing comes is ended after this.
STREAM_IDLE_SECONDS: Final = 60.0
# How often a watch may ask to hear that nothing happened; and how often it does unasked.
HEARTBEAT_SECONDS_MIN: Final = 1.0
HEARTBEAT_SECONDS_MAX: Final = 300.0
HEARTBEAT_SECONDS_DEFAULT: Final = 30.0
# Watches that may be open at once unless configured: each holds a thread, which mostly waits.
WATCHERS_DEFAULT: Final = 32
# A consumer that takes this long over one message of a watch is told to resume, and one that has
# taken nothing for the longer time is cut off: each holds one of few threads.
WATCH_SLOW_SECONDS: Final = 10.0
WATCH_STALL_SECONDS: Final = 30.0
# A call without a deadline gets this one, in milliseconds.
DEADLINE_DEFAULT_MS: Final = 30_000
# A longer deadline counts as this one, 10 minutes: a call may hold a thread for as long.
DEADLINE_MAX_MS: Final = 600_000
# Rows that a certified search looks at besides those that the index proposes: as many as are
# scanned in a few milliseconds. Where more could win, the answer is APPROXIMATE, with a bound.
CERTIFY_ROWS_MAX: Final = 262_144
# The share of the true nearest that an index should find: below a half it would be no index, and
# 1 is a scan.
RECALL_TARGET_MIN: Final = 0.5
RECALL_TARGET_DEFAULT: Final = 0.95
# The score divides by the sum of its weights in float32: far below this it would be noise.
WEIGHTS_SUM_MIN: Final = 1e-6
# Ranking profiles of a configuration: people choose among them by name.
PROFILES_MAX: Final = 64
# Half-lives a request may ask for, in microseconds: 1 minute to 100 years.
HALF_LIFE_MIN_US: Final = 60 * 1_000_000
HALF_LIFE_MAX_US: Final = 100 * 365 * 86_400 * 1_000_000
# A JSON Schema as text. Compressed it fits one record of the store, however it is written.
SCHEMA_BYTES_MAX: Final = 64 * 1024
# Subschemas that a schema comes to once its references are written out: what checking one value
# costs is at most this many steps for each of its parts.
SCHEMA_NODES_MAX: Final = 2000
# How deep they nest; the validator itself ends at 255.
SCHEMA_DEPTH_MAX: Final = 100
# Regular expressions of one schema: each may take half a megabyte once compiled.
SCHEMA_PATTERNS_MAX: Final = 64
SUBJECT_TYPES_MAX: Final = 32
# Attributes registered in one partition: a page of them is sorted by name in memory.
ATTRIBUTES_MAX: Final = 1000
ATTRIBUTES_PAGE_MAX: Final = 100
MISFITS_SHOWN_MAX: Final = 100
STEPS_MAX: Final = 32
OPERATIONS_PAGE_MAX: Final = 100
# How long an operation's record is kept after its end, in microseconds: 7 days.
OPERATION_KEPT_US: Final = 7 * 86_400 * 1_000_000
# Years 1 to 9999, the range of the contract's timestamps, in microseconds since the epoch.
INSTANT_MIN_US: Final = -62_135_596_800_000_000
INSTANT_MAX_US: Final = 253_402_300_799_999_999

# Memories whose uses wait to be written down, in all partitions: about 20 MB. Further memories'
# uses are not counted until then; it takes as many searches as a server answers in minutes.
ACCESSES_PENDING_MAX: Final = 65_536

//! Every limit of the ranker, with its reason.

/// Vector length. Larger embeddings exist, but none that a local memory gains from; it also
/// keeps an int8 dot product (4,096 x 127 x 127) far inside an `i32`.
pub const DIMENSION_MAX: usize = 4096;

/// Results of one search: an answer is read by a model, which never wants more.
pub const RESULTS_MAX: usize = 1000;

/// Rows of one chunk: 6 MiB of float32 at 384 dimensions, so growth never copies more than its
/// own columns, and row numbers inside a chunk fit a `u16`.
pub const CHUNK_ROWS: usize = 4096;

/// Rows of one block: what is summarised and scored together. Its int8 vectors (96 KiB at 384
/// dimensions) stay in a core's second cache, and one row that differs from its neighbours makes
/// a search read little more than itself. Divides [`CHUNK_ROWS`].
pub const BLOCK_ROWS: usize = 256;

/// Values in one set of a filter (subjects, labels, ...): 512 KiB, more than any sane request.
pub const FILTER_VALUES_MAX: usize = 65_536;

/// Filters within one filter, and sets of labels of which it wants one each: enough for whatever a
/// person or an agent thinks up, and few enough to be asked of every row.
pub const FILTER_PARTS_MAX: usize = 256;

/// Levels of filters within filters.
pub const FILTER_DEPTH_MAX: usize = 8;

/// Attributes with a half-life of their own in one profile: more than a partition may register.
pub const ATTRIBUTES_MAX: usize = 65_536;

/// Labels of one row: they are checked one by one.
pub const ROW_LABELS_MAX: usize = 256;

/// Bytes of one part of a text, or of a query: a memory's text with room for its speaker and date.
pub const TEXT_BYTES_MAX: usize = 64 * 1024;

/// Bytes of one word: a SHA-512 in hexadecimal fits. A longer one is known by its beginning.
pub const WORD_BYTES_MAX: usize = 128;

/// Bytes of a word that is stemmed: stemmers are made for words that people say.
pub const STEM_BYTES_MAX: usize = 64;

/// How often a term counts in one text, in eighths: 32 times less one eighth. More would change its
/// score by less than a twentieth, and so it shares 32 bits with a slot number, which leaves room
/// for 16 million rows: 33 GB of vectors of 384 numbers.
pub const TERM_WEIGHT_MAX: u32 = 255;

/// Weight of one part of a text, in eighths. More than eight times is no weight but a filter.
pub const PART_WEIGHT_MAX: u8 = 64;

/// Parts of one text: its own and what was said before it.
pub const TEXT_PARTS_MAX: usize = 16;

/// Kinds are numbered from 1; 0 marks a free slot.
pub const KIND_MAX: u8 = 5;

/// Source kinds are numbered from 1 to at most this; 0 says that none is known.
pub const SOURCE_MAX: usize = 7;

/// Bits of every kind: bit n stands for kind n.
pub(crate) const EVERY_KIND: u8 = (2 << KIND_MAX) - 2;

/// Statuses are numbered from 1.
pub const STATUS_MAX: u8 = 3;

/// The slot number that means "absent"; no row ever has it.
pub const SLOT_ABSENT: u32 = u32::MAX;

/// The time that means "open" (`valid_to`) or "never" (`expires`).
pub const TIME_OPEN: i64 = i64::MAX;

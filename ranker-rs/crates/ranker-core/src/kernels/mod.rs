//! Dot products over rows of a chunk, one implementation per instruction set, chosen at run time.
//!
//! Vectors are whole cache lines, padded with zeros, so that no kernel has a tail loop and every
//! load is aligned. Invariants:
//!
//! - Int8 dot products are exact integers: every path gives the same bits. Values stay within
//!   -127..=127, which the AVX2 path relies on.
//! - Within one path, a row's float32 dot product has the same bits wherever the row stands and
//!   whichever rows are scored with it. Between paths it may differ in rounding (1e-6).
//! - A [`Kernels`] exists only for instruction sets that this CPU has.

use std::sync::OnceLock;

use crate::error::{Error, Result};

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod columns;
#[cfg(target_arch = "aarch64")]
mod neon;
mod scalar;

/// The environment variable that forces a path.
pub const PATH_VARIABLE: &str = "PILLION_RANKER_SIMD";

/// Every path's name, fastest first. A build has only those of its architecture.
pub const PATH_NAMES: [&str; 5] = ["avx512vnni", "avx512", "avx2", "neon", "scalar"];

/// Sixteen float32: one cache line.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C, align(64))]
pub struct LineF32(pub [f32; 16]);

/// Sixty-four int8: one cache line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct LineI8(pub [i8; 64]);

impl LineF32 {
    /// Sixteen zeros.
    pub const ZERO: Self = Self([0.0; 16]);
}

impl LineI8 {
    /// Sixty-four zeros.
    pub const ZERO: Self = Self([0; 64]);
}

/// Cache lines that a vector of `dimension` float32 takes.
#[must_use]
pub const fn lines_f32(dimension: usize) -> usize {
    dimension.div_ceil(16)
}

/// Cache lines that a vector of `dimension` int8 takes.
#[must_use]
pub const fn lines_i8(dimension: usize) -> usize {
    dimension.div_ceil(64)
}

type ScanF32 = unsafe fn(&[LineF32], &[LineF32], &[u16], &mut [f32]);
type ScanI8 = unsafe fn(&[LineI8], &[LineI8], &[u16], &mut [i32]);
type ScanAllI8 = unsafe fn(&[LineI8], &[LineI8], &mut [i32]);
type ReadF32 = unsafe fn(&[LineF32]) -> f32;
type ReadI8 = unsafe fn(&[LineI8]) -> i64;

/// The functions of one instruction set. Get one with [`detect`] or [`named`].
#[derive(Debug)]
pub struct Kernels {
    name: &'static str,
    scan_f32: ScanF32,
    scan_i8: ScanI8,
    scan_all_i8: ScanAllI8,
    read_f32: ReadF32,
    read_i8: ReadI8,
    columns: Columns,
}

/// Comparisons over columns. A mask has one byte per row, 0 or 1.
#[derive(Debug)]
struct Columns {
    within_i64: unsafe fn(&[i64], i64, i64, &mut [u8]),
    within_u64: unsafe fn(&[u64], u64, u64, &mut [u8]),
    within_f32: unsafe fn(&[f32], f32, f32, &mut [u8]),
    among: unsafe fn(&[u64], &[u64], &mut [u8]),
    members: unsafe fn(&[u8], u8, &mut [u8]),
    masked: unsafe fn(&[u16], u16, u16, &mut [u8]),
    reach: unsafe fn(&[i32], &[f32], Reach, &mut [u8]) -> bool,
    hopeful: unsafe fn(&PriorColumns<'_>, &PriorReach, &mut [u8]),
    faded: unsafe fn(&PriorColumns<'_>, &FadeReach, &mut [u8]),
}

/// What a row's cosine, as int8 tells it, must come up to: see [`Kernels::reach`].
#[derive(Debug, Clone, Copy)]
pub struct Reach {
    /// One step of the query's int8 values.
    pub step: f32,
    /// What is added to every cosine.
    pub error: f32,
    /// What the sum must be above.
    pub above: f32,
}

/// What the query-independent part of scores is made of, of neighbouring rows: see
/// [`Kernels::hopeful`].
#[derive(Debug, Clone, Copy)]
pub struct PriorColumns<'a> {
    /// Times from which recency counts, in microseconds.
    pub valid_from: &'a [i64],
    /// Times from which it counts where they are later; None: it never does.
    pub last_used: Option<&'a [i64]>,
    /// Kinds, below 8.
    pub kind: &'a [u8],
    /// Importance.
    pub importance: &'a [f32],
    /// The most relevance that each row can have.
    pub relevance: &'a [f32],
}

/// What a row must come up to: see [`Kernels::hopeful`].
#[derive(Debug, Clone, Copy)]
pub struct PriorReach {
    /// The time from which ages are taken, in microseconds.
    pub now: f64,
    /// Halvings of recency in a microsecond, by kind.
    pub decay: [f32; 8],
    /// Weight of relevance.
    pub w_relevance: f32,
    /// Weight of recency.
    pub w_recency: f32,
    /// Weight of importance.
    pub w_importance: f32,
    /// The least weighted sum.
    pub least: f32,
}

/// What a row's vitality must be below: see [`Kernels::faded`].
#[derive(Debug, Clone, Copy)]
pub struct FadeReach {
    /// The time from which ages are taken, in microseconds.
    pub now: f64,
    /// Halvings of recency in a microsecond, by kind.
    pub decay: [f32; 8],
    /// Thresholds by kind, 0 or 1e-30 and more.
    pub below: [f32; 8],
}

impl Kernels {
    /// The path's name, one of [`PATH_NAMES`].
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// `out[i] = query . row rows[i]`, where `block` holds rows of `query.len()` lines each.
    ///
    /// # Panics
    /// When `rows` and `out` differ in length or a row lies outside `block`.
    pub fn scan_f32(&self, query: &[LineF32], block: &[LineF32], rows: &[u16], out: &mut [f32]) {
        assert_eq!(rows.len(), out.len());
        // SAFETY: this value exists only if the CPU has the path's features (see `available`);
        // the function itself checks every index.
        unsafe { (self.scan_f32)(query, block, rows, out) }
    }

    /// `out[i] = query . row rows[i]` in exact integers; values must be within -127..=127.
    ///
    /// # Panics
    /// When `rows` and `out` differ in length or a row lies outside `block`.
    pub fn scan_i8(&self, query: &[LineI8], block: &[LineI8], rows: &[u16], out: &mut [i32]) {
        assert_eq!(rows.len(), out.len());
        // SAFETY: as in `scan_f32`.
        unsafe { (self.scan_i8)(query, block, rows, out) }
    }

    /// `out[i] = query . row i` in exact integers, of every row of `block`; values must be within
    /// -127..=127.
    ///
    /// # Panics
    /// When `block` isn't `out.len()` rows of `query.len()` lines.
    pub fn scan_all_i8(&self, query: &[LineI8], block: &[LineI8], out: &mut [i32]) {
        assert_eq!(block.len(), query.len() * out.len());
        // SAFETY: as in `scan_f32`.
        unsafe { (self.scan_all_i8)(query, block, out) }
    }

    /// Clears `mask[i]` unless `low <= column[i] <= high`.
    pub fn within_i64(&self, column: &[i64], low: i64, high: i64, mask: &mut [u8]) {
        // SAFETY: as in `scan_f32`.
        unsafe { (self.columns.within_i64)(column, low, high, mask) }
    }

    /// Clears `mask[i]` unless `low <= column[i] <= high`.
    pub fn within_u64(&self, column: &[u64], low: u64, high: u64, mask: &mut [u8]) {
        // SAFETY: as in `scan_f32`.
        unsafe { (self.columns.within_u64)(column, low, high, mask) }
    }

    /// Clears `mask[i]` unless `low <= column[i] <= high`.
    pub fn within_f32(&self, column: &[f32], low: f32, high: f32, mask: &mut [u8]) {
        // SAFETY: as in `scan_f32`.
        unsafe { (self.columns.within_f32)(column, low, high, mask) }
    }

    /// Clears `mask[i]` unless `column[i]` is one of `values`, of which there should be few.
    pub fn among(&self, column: &[u64], values: &[u64], mask: &mut [u8]) {
        // SAFETY: as in `scan_f32`.
        unsafe { (self.columns.among)(column, values, mask) }
    }

    /// Clears `mask[i]` unless bit `column[i]` of `set` is one.
    pub fn members(&self, column: &[u8], set: u8, mask: &mut [u8]) {
        // SAFETY: as in `scan_f32`.
        unsafe { (self.columns.members)(column, set, mask) }
    }

    /// Clears `mask[i]` unless `column[i] & bits == wanted`.
    pub fn masked(&self, column: &[u16], bits: u16, wanted: u16, mask: &mut [u8]) {
        // SAFETY: as in `scan_f32`.
        unsafe { (self.columns.masked)(column, bits, wanted, mask) }
    }

    /// Clears `mask[i]` unless `dots[i] * (step * scales[i]) + error > above`. Returns whether
    /// any is left.
    pub fn reach(&self, dots: &[i32], scales: &[f32], reach: Reach, mask: &mut [u8]) -> bool {
        // SAFETY: as in `scan_f32`.
        unsafe { (self.columns.reach)(dots, scales, reach, mask) }
    }

    /// Clears `mask[i]` where the weighted sum of the row's relevance, recency and importance is
    /// certainly below `reach.least`. Recency is taken a little too high (by 1e-3 at most, and of
    /// what is over 125 half-lives old by next to nothing), never too low.
    pub fn hopeful(&self, columns: &PriorColumns<'_>, reach: &PriorReach, mask: &mut [u8]) {
        // SAFETY: as in `scan_f32`.
        unsafe { (self.columns.hopeful)(columns, reach, mask) }
    }

    /// Clears `mask[i]` where the row's recency x importance is certainly not below the threshold
    /// of its kind. Those a little above it (by 0.4 % at most) may stay. Relevance plays no part.
    pub fn faded(&self, columns: &PriorColumns<'_>, reach: &FadeReach, mask: &mut [u8]) {
        // SAFETY: as in `scan_f32`.
        unsafe { (self.columns.faded)(columns, reach, mask) }
    }

    /// The sum of all values: a bare read of the same bytes, the floor that scans are held to.
    #[must_use]
    pub fn read_f32(&self, block: &[LineF32]) -> f32 {
        // SAFETY: as in `scan_f32`.
        unsafe { (self.read_f32)(block) }
    }

    /// The sum of all bytes taken as 64-bit words (wrapping): a bare read of the same bytes.
    #[must_use]
    pub fn read_i8(&self, block: &[LineI8]) -> i64 {
        // SAFETY: as in `scan_f32`.
        unsafe { (self.read_i8)(block) }
    }
}

/// The paths that this CPU can run, fastest first; the last is always `scalar`.
#[must_use]
pub fn available() -> Vec<&'static Kernels> {
    let mut found: Vec<&'static Kernels> = Vec::new();
    #[cfg(target_arch = "x86_64")]
    {
        let wide = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl");
        if wide && is_x86_feature_detected!("avx512vnni") {
            found.push(&avx512::KERNELS_VNNI);
        }
        if wide {
            found.push(&avx512::KERNELS);
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            found.push(&avx2::KERNELS);
        }
    }
    #[cfg(target_arch = "aarch64")]
    if std::arch::is_aarch64_feature_detected!("neon") {
        found.push(&neon::KERNELS);
    }
    found.push(&scalar::KERNELS);
    found
}

/// The path of that name.
///
/// # Errors
/// [`Error::InvalidArgument`] when the name is unknown or this CPU can't run it.
pub fn named(name: &str) -> Result<&'static Kernels> {
    let available = available();
    if let Some(kernels) = available.iter().find(|kernels| kernels.name == name) {
        return Ok(kernels);
    }
    let runnable: Vec<&str> = available.iter().map(|kernels| kernels.name).collect();
    let what = if PATH_NAMES.contains(&name) {
        "this CPU can't run"
    } else {
        "unknown path"
    };
    Err(Error::argument(
        PATH_VARIABLE,
        format!("{what} {name:?}; allowed here: {}", runnable.join(", ")),
    ))
}

/// The path of this process: what [`PATH_VARIABLE`] says, or the fastest. Decided once.
///
/// # Errors
/// [`Error::InvalidArgument`] when the variable names a path that can't be run.
pub fn detect() -> Result<&'static Kernels> {
    static CHOSEN: OnceLock<Result<&'static Kernels>> = OnceLock::new();
    CHOSEN
        .get_or_init(|| match std::env::var_os(PATH_VARIABLE) {
            Some(name) => named(&name.to_string_lossy()),
            None => Ok(available()[0]),
        })
        .clone()
}

/// The lines of one row of a block.
#[inline]
fn row_of<L>(block: &[L], row: u16, lines: usize) -> &[L] {
    &block[usize::from(row) * lines..][..lines]
}

/// Int8 rows that x86 paths score side by side: they share each load of the query and the final
/// fold. They are short enough for this to be one stream to the prefetcher.
#[cfg(target_arch = "x86_64")]
const TILE: usize = 4;

/// All rows of a block, tile after tile.
#[cfg(target_arch = "x86_64")]
#[inline]
fn tiles<L>(block: &[L], lines: usize) -> impl Iterator<Item = [&[L]; TILE]> {
    block.chunks(TILE * lines).map(move |rows| {
        let last = rows.len() / lines - 1;
        std::array::from_fn(|n| &rows[n.min(last) * lines..][..lines])
    })
}

/// The lines of 1..=`TILE` rows; the last one stands in for those that are missing.
#[cfg(target_arch = "x86_64")]
#[inline]
fn tile<'a, L>(block: &'a [L], rows: &[u16], lines: usize) -> [&'a [L]; TILE] {
    std::array::from_fn(|n| row_of(block, rows[n.min(rows.len() - 1)], lines))
}

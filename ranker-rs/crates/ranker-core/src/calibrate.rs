//! What a row costs on this machine, measured: what a planner chooses by.
//!
//! Each number is the best of several runs over a few blocks of noise, so that what else the machine
//! does at the moment counts little. All of it takes some twenty milliseconds at 384 values, most of them to
//! make the noise.

use std::cell::RefCell;
use std::hint::black_box;
use std::time::Instant;

use crate::Id;
use crate::batch::RowBatch;
use crate::error::Result;
use crate::filter::{Filter, FilterSpec};
use crate::kernels::{Kernels, PriorColumns};
use crate::limits::{BLOCK_ROWS, TIME_OPEN};
use crate::profile::{Profile, ProfileSpec};
use crate::summary::Summary;
use crate::table::{SearchRequest, Table};

/// Nanoseconds a row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Costs {
    /// Asking a column whether the filter admits the row.
    pub filter_row: f64,
    /// Bounding the row's score by its recency and importance.
    pub prior_row: f64,
    /// Comparing its int8 vector with the query, in a scan.
    pub scan_row: f64,
    /// Scoring it with float32, wherever it lies.
    pub score_row: f64,
}

const RUNS: usize = 5;
const ROWS: usize = 4 * BLOCK_ROWS;
/// An hour, in microseconds.
const STEP: i64 = 3_600_000_000;

/// Measures on vectors of `dimension` values.
///
/// # Errors
/// As [`Table::new`].
pub fn calibrate(dimension: usize) -> Result<Costs> {
    let table = filled(dimension)?;
    let (profile, everything) = (
        Profile::new(ProfileSpec::default())?,
        Filter::new(FilterSpec::default())?,
    );
    // Half of the rows of every block: no summary can answer that.
    let half = Filter::new(FilterSpec {
        created_from: Some(STEP),
        ..FilterSpec::default()
    })?;
    let query = noise(dimension, 1);
    let request = SearchRequest {
        query: Some(&query),
        text: None,
        now: ROWS as i64 * STEP,
        profile: &profile,
        filter: &everything,
        k: 1, // what keeping more costs does not grow with the rows
    };
    // Neighbours would be read ahead of their turn.
    let spread: Vec<u32> = (0..ROWS as u32).step_by(5).collect();
    let filter_row = per_row(ROWS, || table.count(&half))?;
    let prior_row = prior_row(table.kernels(), &profile)?;
    let scan_row = per_row(ROWS, || table.search(&request, false))?;
    let score_row = per_row(spread.len(), || table.score(&request, &spread))?;
    Ok(Costs {
        filter_row,
        prior_row,
        scan_row,
        score_row,
    })
}

/// The pass over recency and importance, where it rules out every row.
fn prior_row(kernels: &Kernels, profile: &Profile) -> Result<f64> {
    let (times, shares) = (vec![0; ROWS], noise(ROWS, 4));
    let columns = PriorColumns {
        valid_from: &times,
        last_used: None,
        kind: &vec![1; ROWS],
        importance: &shares,
        relevance: &shares,
    };
    let reach = profile.prior_reach(&Summary::UNKNOWN, STEP, 2.0);
    let mask = RefCell::new(vec![1; ROWS]);
    per_row(ROWS, || {
        kernels.hopeful(&columns, &reach, &mut mask.borrow_mut());
        Ok(())
    })
}

fn per_row<T>(rows: usize, call: impl Fn() -> Result<T>) -> Result<f64> {
    let mut best = f64::INFINITY;
    for _ in 0..RUNS {
        let start = Instant::now();
        black_box(call()?);
        best = best.min(start.elapsed().as_nanos() as f64);
    }
    Ok(best / rows as f64)
}

/// Numbers without a pattern, -1..1.
fn noise(count: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1_u32 << 23) as f32 - 1.0
    };
    std::iter::repeat_with(next).take(count).collect()
}

/// A table of some blocks, its rows an hour apart.
fn filled(dimension: usize) -> Result<Table> {
    let table = Table::new(dimension)?;
    let id = |row: usize| -> Id { (row as u128 + 1).to_be_bytes() };
    let ids: Vec<Id> = (0..ROWS).map(id).collect();
    let ages: Vec<i64> = (0..ROWS).map(|row| row as i64 * STEP).collect();
    let created: Vec<i64> = (0..ROWS).map(|row| (row % 2) as i64 * STEP).collect();
    let open = vec![TIME_OPEN; ROWS];
    let importance: Vec<f32> = noise(ROWS, 2).iter().map(|one| one.abs()).collect();
    let (ones, twos, flags) = (vec![1; ROWS], vec![2; ROWS], vec![0; ROWS]);
    let hashes = vec![7; ROWS];
    table.upsert(&RowBatch {
        ids: &ids,
        created: &created,
        last_used: &ages,
        valid_from: &ages,
        valid_to: &open,
        recorded: &ages,
        expires: &open,
        importance: &importance,
        confidence: &importance,
        kind: &ones,
        status: &twos,
        flags: &flags,
        subject: &hashes,
        context: &hashes,
        attribute: &hashes,
        label_offsets: &vec![0; ROWS + 1],
        label_hashes: &[],
        has_vector: &vec![true; ROWS],
        vectors: &noise(ROWS * dimension, 3),
    })?;
    Ok(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cost_is_a_number_of_nanoseconds() {
        let costs = calibrate(24).unwrap();
        for cost in [
            costs.filter_row,
            costs.prior_row,
            costs.scan_row,
            costs.score_row,
        ] {
            assert!(cost.is_finite() && cost > 0.0, "{costs:?}");
        }
        assert!(calibrate(0).is_err());
    }
}

//! The table: one partition's rows behind a lock.
//!
//! Searches share the lock and run side by side; a change excludes everything else and is applied
//! whole or not at all. Arguments are checked before the lock is taken, where they can be.

use std::hash::RandomState;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::Id;
use crate::batch::RowBatch;
use crate::certify::Proposal;
use crate::error::{Error, Result};
use crate::filter::Filter;
use crate::kernels::{self, Kernels};
use crate::limits::{CHUNK_ROWS, DIMENSION_MAX, KIND_MAX, RESULTS_MAX, SLOT_ABSENT};
use crate::profile::Profile;
use crate::quantise::{Query, norm_of};
use crate::relevance::Blend;
use crate::search::{Hits, Pass};
use crate::store::Store;
use crate::texts::check_query;

/// What a search or a scoring asks.
#[derive(Debug, Clone, Copy)]
pub struct SearchRequest<'a> {
    /// The query's vector, of any length above zero; without one no likeness of meaning counts.
    pub query: Option<&'a [f32]>,
    /// The query's text, whose words are looked for; without one no likeness of words counts.
    pub text: Option<&'a str>,
    /// The time that recency counts back from.
    pub now: i64,
    /// Weights and decay.
    pub profile: &'a Profile,
    /// What may be returned.
    pub filter: &'a Filter,
    /// The most results, 1..=[`RESULTS_MAX`].
    pub k: usize,
}

/// One partition's rows.
#[derive(Debug)]
pub struct Table {
    dimension: usize,
    kernels: &'static Kernels,
    store: RwLock<Store>,
    /// Keyed at random: texts may come from a client that wants their terms to collide.
    pub(crate) hasher: RandomState,
}

fn poisoned<T>(_: PoisonError<T>) -> Error {
    Error::Poisoned
}

impl Table {
    /// An empty table of vectors of `dimension` values, 1..=[`DIMENSION_MAX`].
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for another dimension, or a forced path that can't be run.
    pub fn new(dimension: usize) -> Result<Self> {
        Self::with_kernels(dimension, kernels::detect()?)
    }

    /// As [`Table::new`], with a path of the caller's choice.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for another dimension.
    pub fn with_kernels(dimension: usize, kernels: &'static Kernels) -> Result<Self> {
        if !(1..=DIMENSION_MAX).contains(&dimension) {
            return Err(Error::argument(
                "dimension",
                format!("{dimension} is not in 1..={DIMENSION_MAX}"),
            ));
        }
        Ok(Self {
            dimension,
            kernels,
            store: RwLock::new(Store::new(dimension)),
            hasher: RandomState::new(),
        })
    }

    /// The length of vectors.
    #[must_use]
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// The kernels in use.
    #[must_use]
    pub fn kernels(&self) -> &'static Kernels {
        self.kernels
    }

    pub(crate) fn read(&self) -> Result<RwLockReadGuard<'_, Store>> {
        self.store.read().map_err(poisoned)
    }

    pub(crate) fn write(&self) -> Result<RwLockWriteGuard<'_, Store>> {
        self.store.write().map_err(poisoned)
    }

    /// Live rows.
    ///
    /// # Errors
    /// [`Error::Poisoned`], which every method can return and none mentions again.
    pub fn len(&self) -> Result<usize> {
        Ok(self.read()?.len())
    }

    /// Whether there are no rows.
    ///
    /// # Errors
    /// As [`Table::len`].
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Adds rows, or replaces those whose id is present in the slot that they have. Returns the
    /// slot of each. Of an id that is twice in the batch the later row stays.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] and [`Error::InvalidRow`] for a malformed batch,
    /// [`Error::Full`]; nothing is applied then.
    pub fn upsert(&self, batch: &RowBatch<'_>) -> Result<Vec<u32>> {
        batch.check(self.dimension)?;
        self.write()?.upsert(batch)
    }

    /// Sets vectors of rows that are there; `vectors` holds them row after row. Returns how many
    /// ids are unknown: those are ignored.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a wrong length, [`Error::InvalidRow`] for a vector that is
    /// not finite or all zeros; nothing is applied then.
    pub fn set_vectors(&self, ids: &[Id], vectors: &[f32]) -> Result<usize> {
        if vectors.len() != ids.len() * self.dimension {
            return Err(Error::argument(
                "vectors",
                format!(
                    "{} values where {} rows want {}",
                    vectors.len(),
                    ids.len(),
                    ids.len() * self.dimension
                ),
            ));
        }
        let rows: Vec<&[f32]> = vectors.chunks_exact(self.dimension).collect();
        let mut norms = Vec::with_capacity(ids.len());
        for (row, values) in rows.iter().enumerate() {
            norms.push(norm_of(values).ok_or_else(|| {
                Error::row(row, "vectors", "a vector must be finite and not all zeros")
            })?);
        }
        Ok(self.write()?.change(ids, |chunk, row, from| {
            chunk.write_vector(row, rows[from], norms[from]);
        }))
    }

    /// Removes rows and overwrites their bytes with zeros. Returns how many were there.
    ///
    /// # Errors
    /// As [`Table::len`].
    pub fn remove(&self, ids: &[Id]) -> Result<usize> {
        Ok(self.write()?.remove(ids))
    }

    /// Moves `last_used` of rows forward, never back. Returns how many ids are unknown: those are
    /// ignored.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] when the lengths differ.
    pub fn touch(&self, ids: &[Id], last_used: &[i64]) -> Result<usize> {
        if ids.len() != last_used.len() {
            return Err(Error::argument(
                "last_used",
                format!("{} values for {} ids", last_used.len(), ids.len()),
            ));
        }
        Ok(self
            .write()?
            .change(ids, |chunk, row, from| chunk.touch(row, last_used[from])))
    }

    /// Removes every row and gives the memory back.
    ///
    /// # Errors
    /// As [`Table::len`].
    pub fn clear(&self) -> Result<()> {
        self.write()?.clear();
        Ok(())
    }

    /// The slot of each id, [`SLOT_ABSENT`] where there is none.
    ///
    /// # Errors
    /// As [`Table::len`].
    pub fn slots(&self, ids: &[Id]) -> Result<Vec<u32>> {
        let store = self.read()?;
        Ok(ids
            .iter()
            .map(|id| store.slot_of(id).unwrap_or(SLOT_ABSENT))
            .collect())
    }

    /// The id in each slot.
    ///
    /// # Errors
    /// [`Error::DeadSlot`] when a slot is free.
    pub fn ids_of(&self, slots: &[u32]) -> Result<Vec<Id>> {
        let store = self.read()?;
        slots
            .iter()
            .map(|slot| {
                let (chunk, row) = store.live(*slot).ok_or(Error::DeadSlot(*slot))?;
                Ok(chunk.id[row])
            })
            .collect()
    }

    /// The unit vectors in the slots, row after row.
    ///
    /// # Errors
    /// [`Error::DeadSlot`] when a slot is free or its row has no vector.
    pub fn vectors_of(&self, slots: &[u32]) -> Result<Vec<f32>> {
        let store = self.read()?;
        let mut values = Vec::with_capacity(slots.len() * self.dimension);
        for slot in slots {
            let (chunk, row) = store
                .live(*slot)
                .filter(|(chunk, row)| chunk.has_vector(*row))
                .ok_or(Error::DeadSlot(*slot))?;
            let padded = chunk.unit_of(row).iter().flat_map(|line| line.0);
            values.extend(padded.take(self.dimension));
        }
        Ok(values)
    }

    /// Slots, ascending, of rows that have a vector.
    ///
    /// # Errors
    /// As [`Table::len`].
    pub fn live_slots(&self) -> Result<Vec<u32>> {
        let store = self.read()?;
        let mut slots = Vec::new();
        for (number, chunk) in store.chunks.iter().enumerate() {
            let rows = (0..chunk.len()).filter(|row| chunk.has_vector(*row));
            slots.extend(rows.map(|row| (number * CHUNK_ROWS + row) as u32));
        }
        Ok(slots)
    }

    /// Bytes in use. Memory that is reserved but was never touched doesn't count.
    ///
    /// # Errors
    /// As [`Table::len`].
    pub fn memory_bytes(&self) -> Result<usize> {
        Ok(self.read()?.memory_bytes())
    }

    /// The exact best k of all admitted rows. `exact_float` scans float32 vectors only; the
    /// results are the same.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for k out of range or an unusable query.
    pub fn search(&self, request: &SearchRequest<'_>, exact_float: bool) -> Result<Hits> {
        self.pass(request, |pass| match pass.query {
            Some(query) if !exact_float => pass.pruned(query, request.k),
            _ => pass.exact(request.k),
        })
    }

    /// The exact best k of the given slots. Free slots are skipped, repeated ones count once.
    ///
    /// # Errors
    /// As [`Table::search`].
    pub fn score(&self, request: &SearchRequest<'_>, slots: &[u32]) -> Result<Hits> {
        self.pass(request, |pass| pass.slots(slots, request.k))
    }

    /// The best k of all admitted rows, exact if the proposal's claim is true; or, where the
    /// proposal's limit is reached, hits with a bound on what was left out.
    ///
    /// # Errors
    /// As [`Table::search`], and for a request without a query or a horizon that is not a number.
    pub fn certify(&self, request: &SearchRequest<'_>, proposal: &Proposal<'_>) -> Result<Hits> {
        if request.query.is_none() {
            return Err(Error::argument("query", "an index proposes only for one"));
        }
        if proposal.horizon.is_nan() {
            return Err(Error::argument("horizon", "not a number"));
        }
        self.pass(request, |pass| match pass.query {
            Some(query) => pass.certified(query, proposal, request.k),
            None => pass.exact(request.k),
        })
    }

    fn pass(
        &self,
        request: &SearchRequest<'_>,
        run: impl FnOnce(&Pass<'_>) -> Hits,
    ) -> Result<Hits> {
        if !(1..=RESULTS_MAX).contains(&request.k) {
            return Err(Error::argument(
                "k",
                format!("{} is not in 1..={RESULTS_MAX}", request.k),
            ));
        }
        let query = request.query.map(|query| self.query(query)).transpose()?;
        request.text.map(check_query).transpose()?;
        let store = self.read()?;
        let bm25 = request.profile.spec().bm25;
        let lexical = request
            .text
            .map(|text| store.lexical.score(&self.hasher, text, bm25))
            .filter(|lexical| lexical.total > 0.0);
        let lexical_weight = request.profile.spec().lexical_weight;
        Ok(run(&Pass {
            store: &store,
            kernels: self.kernels,
            query: query.as_ref(),
            lexical: lexical.as_ref(),
            blend: Blend::new(lexical_weight, lexical.is_some(), query.is_some()),
            now: request.now,
            profile: request.profile,
            filter: request.filter,
        }))
    }

    fn query(&self, values: &[f32]) -> Result<Query> {
        if values.len() != self.dimension {
            return Err(Error::argument(
                "query",
                format!("{} values, the table has {}", values.len(), self.dimension),
            ));
        }
        let norm = norm_of(values)
            .ok_or_else(|| Error::argument("query", "must be finite and not all zeros"))?;
        Ok(Query::new(values, norm))
    }

    /// How many rows the filter admits.
    ///
    /// # Errors
    /// As [`Table::len`].
    pub fn count(&self, filter: &Filter) -> Result<usize> {
        Ok(Pass::count(&*self.read()?, self.kernels, filter))
    }

    /// Ids, ascending, of admitted rows that faded: recency x importance is under the threshold
    /// of their kind. Pinned rows are exempt.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a threshold that is not a number.
    pub fn vitality(
        &self,
        now: i64,
        profile: &Profile,
        filter: &Filter,
        below: &[f32; KIND_MAX as usize + 1],
    ) -> Result<Vec<Id>> {
        if below.iter().any(|threshold| threshold.is_nan()) {
            return Err(Error::argument("below", "a threshold is not a number"));
        }
        let store = self.read()?;
        let pass = Pass {
            store: &store,
            kernels: self.kernels,
            query: None,
            lexical: None,
            blend: Blend::new(0.0, false, false),
            now,
            profile,
            filter,
        };
        Ok(pass.faded(below))
    }

    /// The bare float32 scan of every slot: what a search spends on dot products. For benchmarks.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for an unusable query.
    pub fn bench_scan_f32(&self, query: &[f32]) -> Result<f32> {
        let query = self.query(query)?;
        let (rows, mut out) = bench_buffers(0.0);
        let mut best = f32::NEG_INFINITY;
        for chunk in &self.read()?.chunks {
            let (rows, out) = (&rows[..chunk.len()], &mut out[..chunk.len()]);
            self.kernels.scan_f32(&query.unit, &chunk.unit, rows, out);
            best = out.iter().fold(best, |best, dot| best.max(*dot));
        }
        Ok(best)
    }

    /// The bare int8 scan of every slot. For benchmarks.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for an unusable query.
    pub fn bench_scan_i8(&self, query: &[f32]) -> Result<i32> {
        let query = self.query(query)?;
        let (_, mut out) = bench_buffers(0);
        let mut best = i32::MIN;
        for chunk in &self.read()?.chunks {
            let out = &mut out[..chunk.len()];
            self.kernels
                .scan_all_i8(&query.quantised, &chunk.quantised, out);
            best = out.iter().fold(best, |best, dot| best.max(*dot));
        }
        Ok(best)
    }

    /// A bare read of every float32 vector: the floor of [`Table::bench_scan_f32`].
    ///
    /// # Errors
    /// As [`Table::len`].
    pub fn bench_read_f32(&self) -> Result<f32> {
        let store = self.read()?;
        let chunks = store.chunks.iter();
        Ok(chunks.map(|chunk| self.kernels.read_f32(&chunk.unit)).sum())
    }

    /// A bare read of every int8 vector: the floor of [`Table::bench_scan_i8`].
    ///
    /// # Errors
    /// As [`Table::len`].
    pub fn bench_read_i8(&self) -> Result<i64> {
        let store = self.read()?;
        let chunks = store.chunks.iter();
        Ok(chunks
            .map(|chunk| self.kernels.read_i8(&chunk.quantised))
            .fold(0, i64::wrapping_add))
    }
}

fn bench_buffers<T: Copy>(zero: T) -> (Vec<u16>, Vec<T>) {
    ((0..CHUNK_ROWS as u16).collect(), vec![zero; CHUNK_ROWS])
}

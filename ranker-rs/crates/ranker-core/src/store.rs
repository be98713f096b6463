//! Where rows live: chunks, the index from id to slot, and the slots that are free.
//!
//! Invariants:
//! - a slot is `chunk number * CHUNK_ROWS + row` and doesn't change while its row lives;
//! - every change ends with every block summarised;
//! - every chunk but the last is full;
//! - `index` holds exactly the live slots, `free` exactly the others, last freed last;
//! - `lexical` has texts of live slots only.

use std::hash::{BuildHasher, RandomState};

use hashbrown::HashTable;

use crate::Id;
use crate::batch::RowBatch;
use crate::chunk::{Block, Chunk};
use crate::error::{Error, Result};
use crate::lexical::LexicalIndex;
use crate::limits::{CHUNK_ROWS, SLOT_ABSENT};

#[derive(Debug)]
pub(crate) struct Store {
    dimension: usize,
    pub chunks: Vec<Chunk>,
    /// Holds slots only; ids are compared in the columns, which saves 16 bytes a row.
    index: HashTable<u32>,
    /// Keyed at random: ids may come from a client that wants them to collide.
    hasher: RandomState,
    free: Vec<u32>,
    /// Texts of live slots.
    pub lexical: LexicalIndex,
}

/// The chunk and row of a slot.
#[inline]
pub(crate) fn place(slot: u32) -> (usize, usize) {
    (slot as usize / CHUNK_ROWS, slot as usize % CHUNK_ROWS)
}

impl Store {
    pub fn new(dimension: usize) -> Self {
        Self {
            dimension,
            chunks: Vec::new(),
            index: HashTable::new(),
            hasher: RandomState::new(),
            free: Vec::new(),
            lexical: LexicalIndex::default(),
        }
    }

    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// The chunk and row of a slot, where a row lives there.
    pub fn live(&self, slot: u32) -> Option<(&Chunk, usize)> {
        let (chunk, row) = place(slot);
        let chunk = self.chunks.get(chunk)?;
        (row < chunk.len() && chunk.is_live(row)).then_some((chunk, row))
    }

    pub fn slot_of(&self, id: &Id) -> Option<u32> {
        self.index
            .find(self.hasher.hash_one(id), |slot| {
                *id_at(&self.chunks, *slot) == *id
            })
            .copied()
    }

    /// Every block. Chunks with the newest slots come first: what is new ranks high, so the bar
    /// for the others rises soon. Within a chunk they go up, as the prefetcher expects.
    pub fn blocks(&self) -> impl Iterator<Item = Block<'_>> {
        let chunks = self.chunks.iter().enumerate().rev();
        chunks.flat_map(|(number, chunk)| chunk.blocks(number))
    }

    /// Every block, strictly from the newest slots to the oldest.
    pub fn blocks_newest_first(&self) -> impl Iterator<Item = Block<'_>> {
        let chunks = self.chunks.iter().enumerate().rev();
        chunks.flat_map(|(number, chunk)| chunk.blocks(number).rev())
    }

    /// Writes every row of a checked batch and returns their slots.
    pub fn upsert(&mut self, batch: &RowBatch<'_>) -> Result<Vec<u32>> {
        self.reserve(batch.len())?;
        let mut slots = Vec::with_capacity(batch.len());
        for (from, id) in batch.ids.iter().enumerate() {
            let slot = self.slot_of(id).unwrap_or_else(|| self.take_slot(id));
            let (chunk, row) = place(slot);
            self.chunks[chunk].write(row, batch, from);
            slots.push(slot);
        }
        self.summarise();
        Ok(slots)
    }

    /// Calls `change` with the place of each id that is there and its position in `ids`. Returns
    /// how many are not.
    pub fn change(
        &mut self,
        ids: &[Id],
        mut change: impl FnMut(&mut Chunk, usize, usize),
    ) -> usize {
        let mut unknown = 0;
        for (position, id) in ids.iter().enumerate() {
            match self.slot_of(id).map(place) {
                Some((chunk, row)) => change(&mut self.chunks[chunk], row, position),
                None => unknown += 1,
            }
        }
        self.summarise();
        unknown
    }

    fn summarise(&mut self) {
        self.chunks.iter_mut().for_each(Chunk::summarise);
    }

    /// Refuses before anything is changed if the slot numbers could run out.
    fn reserve(&mut self, rows: usize) -> Result<()> {
        let used = self.chunks.len().saturating_sub(1) * CHUNK_ROWS
            + self.chunks.last().map_or(0, Chunk::len);
        let fresh = rows.saturating_sub(self.free.len());
        if used + fresh > SLOT_ABSENT as usize {
            return Err(Error::Full);
        }
        let Self {
            index,
            hasher,
            chunks,
            ..
        } = self;
        index.reserve(rows, |slot| hasher.hash_one(id_at(chunks, *slot)));
        Ok(())
    }

    /// A slot for a new id, entered in the index.
    fn take_slot(&mut self, id: &Id) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            if self.chunks.last().is_none_or(Chunk::is_full) {
                self.chunks.push(Chunk::new(self.dimension));
            }
            let chunk = self.chunks.len() - 1;
            (chunk * CHUNK_ROWS + self.chunks[chunk].push_free()) as u32
        });
        let (chunk, row) = place(slot);
        self.chunks[chunk].id[row] = *id;
        let Self {
            index,
            hasher,
            chunks,
            ..
        } = self;
        index.insert_unique(hasher.hash_one(id), slot, |slot| {
            hasher.hash_one(id_at(chunks, *slot))
        });
        slot
    }

    /// Removes rows and erases their bytes. Returns how many were there.
    pub fn remove(&mut self, ids: &[Id]) -> usize {
        let removed = ids.iter().filter(|id| self.remove_one(id)).count();
        self.summarise();
        removed
    }

    fn remove_one(&mut self, id: &Id) -> bool {
        let Self {
            index,
            hasher,
            chunks,
            ..
        } = self;
        let Ok(entry) = index.find_entry(hasher.hash_one(id), |slot| *id_at(chunks, *slot) == *id)
        else {
            return false;
        };
        let (slot, _) = entry.remove();
        let (chunk, row) = place(slot);
        self.chunks[chunk].erase(row);
        self.lexical.remove(slot);
        self.free.push(slot);
        true
    }

    /// Erases everything, and gives the memory back.
    pub fn clear(&mut self) {
        for chunk in &mut self.chunks {
            for row in 0..chunk.len() {
                chunk.erase(row);
            }
            // Without this the compiler may drop writes to memory that is freed next.
            std::hint::black_box(&*chunk);
        }
        *self = Self::new(self.dimension);
    }

    pub fn memory_bytes(&self) -> usize {
        let chunks: usize = self.chunks.iter().map(Chunk::memory_bytes).sum();
        chunks
            + self.index.allocation_size()
            + self.free.capacity() * size_of::<u32>()
            + self.lexical.memory_bytes()
    }
}

fn id_at(chunks: &[Chunk], slot: u32) -> &Id {
    let (chunk, row) = place(slot);
    &chunks[chunk].id[row]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::{LineF32, LineI8};

    fn store_of_one() -> (Store, Id) {
        let id = [9; 16];
        let mut store = Store::new(20);
        store
            .upsert(&RowBatch {
                ids: &[id],
                created: &[1],
                last_used: &[2],
                valid_from: &[3],
                valid_to: &[4],
                recorded: &[5],
                expires: &[6],
                importance: &[0.7],
                confidence: &[0.8],
                kind: &[1],
                status: &[2],
                flags: &[3],
                subject: &[11],
                context: &[12],
                attribute: &[13],
                label_offsets: &[0, 2],
                label_hashes: &[14, 15],
                has_vector: &[true],
                vectors: &[0.25; 20],
            })
            .unwrap();
        (store, id)
    }

    #[test]
    fn nothing_of_a_removed_row_stays() {
        let (mut store, id) = store_of_one();
        assert!(store.chunks[0].unit[0].0[0] > 0.0 && store.chunks[0].quantised[0].0[0] == 127);
        assert_eq!(store.remove(&[id, id]), 1);
        let mut untouched = Chunk::new(20);
        untouched.push_free();
        untouched.summarise();
        // Every column, without having to name them: a new column is covered too.
        assert_eq!(format!("{:?}", store.chunks[0]), format!("{untouched:?}"));
        assert!(
            store.chunks[0]
                .unit
                .iter()
                .all(|line| *line == LineF32::ZERO)
        );
        assert!(
            store.chunks[0]
                .quantised
                .iter()
                .all(|line| *line == LineI8::ZERO)
        );
        assert_eq!((store.len(), &store.free[..]), (0, &[0][..]));
    }

    #[test]
    fn clear_leaves_an_empty_store() {
        let (mut store, id) = store_of_one();
        store.clear();
        assert_eq!(
            (store.len(), store.slot_of(&id), store.memory_bytes()),
            (0, None, 0)
        );
    }
}

//! Texts of a table's rows: what makes them searchable by their words.

use crate::Id;
use crate::error::{Error, Result};
use crate::lexical::{Bm25, LexicalScores, Preparer, SLOT_END, TextPart, fingerprint};
use crate::limits::{PART_WEIGHT_MAX, TEXT_BYTES_MAX, TEXT_PARTS_MAX};
use crate::table::Table;

impl Table {
    /// Sets the texts of rows that are there, each made of parts that are one bag of terms; no
    /// part means no text. Of an id that is there twice the later text stays. Returns how many ids
    /// are unknown: those are ignored.
    ///
    /// A text that its row has already costs one hash. [`Table::upsert`] leaves texts as they are,
    /// [`Table::remove`] leaves nothing of them.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] when the lengths differ, [`Error::InvalidRow`] for a part of
    /// more than [`TEXT_BYTES_MAX`] bytes, a weight outside 1..=[`PART_WEIGHT_MAX`] or more than
    /// [`TEXT_PARTS_MAX`] parts, [`Error::Full`] for a row whose slot is out of the index's reach;
    /// nothing is applied then.
    pub fn set_texts(&self, ids: &[Id], texts: &[Vec<TextPart<'_>>]) -> Result<usize> {
        if ids.len() != texts.len() {
            return Err(Error::argument(
                "texts",
                format!("{} texts for {} ids", texts.len(), ids.len()),
            ));
        }
        for (row, parts) in texts.iter().enumerate() {
            check(row, parts)?;
        }
        let hasher = &self.hasher;
        let prints: Vec<u64> = texts
            .iter()
            .map(|parts| fingerprint(hasher, parts))
            .collect();
        // Terms are made before the lock is taken, of those texts that look new.
        let is_new: Vec<bool> = {
            let store = self.read()?;
            let known = |id| {
                store
                    .slot_of(id)
                    .map(|slot| store.lexical.fingerprint(slot))
            };
            let pairs = ids.iter().zip(&prints);
            pairs
                .map(|(id, print)| known(id).is_some_and(|known| known != *print))
                .collect()
        };
        let mut maker = Preparer::new(hasher);
        let mut prepared: Vec<_> = texts
            .iter()
            .zip(is_new)
            .map(|(parts, is_new)| (is_new && !parts.is_empty()).then(|| maker.prepare(parts)))
            .collect();
        let mut store = self.write()?;
        let slots: Vec<Option<u32>> = ids.iter().map(|id| store.slot_of(id)).collect();
        if slots.iter().flatten().any(|slot| *slot >= SLOT_END) {
            return Err(Error::Full);
        }
        for (row, slot) in slots.iter().enumerate() {
            let Some(slot) = *slot else {
                continue;
            };
            if texts[row].is_empty() {
                store.lexical.remove(slot);
            } else if store.lexical.fingerprint(slot) != prints[row] {
                // Another thread may have changed the row meanwhile.
                let text = prepared[row].take();
                let text = text.unwrap_or_else(|| maker.prepare(&texts[row]));
                store.lexical.put(slot, &text);
            }
        }
        Ok(slots.iter().filter(|slot| slot.is_none()).count())
    }

    /// What the words of a query come to in each row, whatever else there is to a score.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a query of more than [`TEXT_BYTES_MAX`] bytes.
    pub fn lexical_scores(&self, query: &str, bm25: Bm25) -> Result<LexicalScores> {
        check_query(query)?;
        Ok(self.read()?.lexical.score(&self.hasher, query, bm25))
    }
}

fn check(row: usize, parts: &[TextPart<'_>]) -> Result<()> {
    const COLUMN: &str = "texts";
    if parts.len() > TEXT_PARTS_MAX {
        let count = parts.len();
        let reason = format!("{count} parts, at most {TEXT_PARTS_MAX} are taken");
        return Err(Error::row(row, COLUMN, reason));
    }
    for part in parts {
        if part.text.len() > TEXT_BYTES_MAX {
            let bytes = part.text.len();
            let reason = format!("a part of {bytes} bytes, at most {TEXT_BYTES_MAX} are taken");
            return Err(Error::row(row, COLUMN, reason));
        }
        if !(1..=PART_WEIGHT_MAX).contains(&part.weight) {
            let reason = format!("weight {} is not in 1..={PART_WEIGHT_MAX}", part.weight);
            return Err(Error::row(row, COLUMN, reason));
        }
    }
    Ok(())
}

pub(crate) fn check_query(query: &str) -> Result<()> {
    if query.len() > TEXT_BYTES_MAX {
        let bytes = query.len();
        return Err(Error::argument(
            "text",
            format!("{bytes} bytes, at most {TEXT_BYTES_MAX} are taken"),
        ));
    }
    Ok(())
}

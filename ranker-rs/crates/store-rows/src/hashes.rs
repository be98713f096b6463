//! The keyed hashes that stand for names in a table's columns: those of
//! `pillion_storage.keys.KeySpace.column`.

use std::collections::HashMap;

use blake2::Blake2bMac;
use blake2::digest::consts::U16;
use blake2::digest::{KeyInit, Mac};

use crate::declined::{Declined, Result};

/// Names whose hashes are kept: contexts, labels and subjects come again and again.
const KEPT_MAX: usize = 1 << 16;

/// Hashes names under one partition's secret.
#[derive(Clone)]
pub struct ColumnHashes {
    keyed: Blake2bMac<U16>,
    known: HashMap<Vec<u8>, u64>,
    said: Vec<u8>,
}

impl ColumnHashes {
    /// Hashes under a secret of 1 to 64 bytes.
    ///
    /// # Errors
    /// [`Declined`] for a secret of another length.
    pub fn new(secret: &[u8]) -> Result<Self> {
        Ok(Self {
            keyed: KeyInit::new_from_slice(secret)
                .map_err(|_| Declined("a partition's secret has another length"))?,
            known: HashMap::new(),
            said: Vec::new(),
        })
    }

    /// The hash of a name, kept apart from names of other kinds by its first part.
    pub fn of(&mut self, parts: &[&str]) -> u64 {
        self.say(parts);
        if let Some(known) = self.known.get(&self.said) {
            return *known;
        }
        let hash = self.hash();
        if self.known.len() >= KEPT_MAX {
            self.known.clear();
        }
        self.known.insert(self.said.clone(), hash);
        hash
    }

    /// The same of a name that is unlikely to come again.
    pub fn once(&mut self, parts: &[&str]) -> u64 {
        self.say(parts);
        self.hash()
    }

    /// Writes down what is hashed: each part after its length.
    fn say(&mut self, parts: &[&str]) {
        self.said.clear();
        for part in ["column"].iter().chain(parts) {
            self.said
                .extend_from_slice(&(part.len() as u32).to_be_bytes());
            self.said.extend_from_slice(part.as_bytes());
        }
    }

    fn hash(&self) -> u64 {
        let mut keyed = self.keyed.clone();
        keyed.update(&self.said);
        let digest = keyed.finalize().into_bytes();
        let mut first = [0; 8];
        first.copy_from_slice(&digest[..8]);
        u64::from_be_bytes(first)
    }
}

impl std::fmt::Debug for ColumnHashes {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("ColumnHashes")
            .finish_non_exhaustive()
    }
}

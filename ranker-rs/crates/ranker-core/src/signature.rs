//! Signatures of blocks: which subjects, attributes and labels their rows may have.
//!
//! A Bloom filter (Bloom 1970) over the hashes in a block. It never says that a hash is absent which
//! is there, so a filter on a subject or a label costs little in all the blocks that have none of
//! it: a look at two bits. A row has some four to ten hashes (subject, attribute, source, episode,
//! labels); with a thousand of them in a block a hash that is absent is taken for present once in
//! ten times, and with the few that neighbours mostly share, hardly ever.

/// Bits of a signature: 32 bytes for every 16 rows.
const BITS: usize = 4096;
const WORDS: usize = BITS / 64;

/// The hashes that rows of a block may have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Signature([u64; WORDS]);

impl Signature {
    /// May hold anything.
    pub const UNKNOWN: Self = Self([u64::MAX; WORDS]);

    /// Holds nothing.
    pub const EMPTY: Self = Self([0; WORDS]);

    /// Two bits, from a product that mixes hashes which aren't.
    fn places(hash: u64) -> [usize; 2] {
        let mixed = hash.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        [(mixed >> 52) as usize, (mixed >> 40) as usize % BITS]
    }

    pub fn add(&mut self, hash: u64) {
        for place in Self::places(hash) {
            self.0[place / 64] |= 1 << (place % 64);
        }
    }

    /// Whether a row may have that hash, in whichever of its columns.
    pub fn may_hold(&self, hash: u64) -> bool {
        let mut places = Self::places(hash).into_iter();
        places.all(|place| (self.0[place / 64] >> (place % 64)) & 1 == 1)
    }
}

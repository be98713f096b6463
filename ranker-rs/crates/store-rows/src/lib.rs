//! Many stored rows at once: checked, opened, decoded, and put into a ranker's table.
//!
//! A partition that is loaded brings hundreds of thousands of rows. Each has a checksum, most are
//! sealed, and a memory is a `MessagePack` map of which a table wants two dozen fields. Python does
//! all of that one row at a time, and is what this crate is tested against: what comes out is the
//! same, or the rows are declined ([`Declined`]) and Python, which can say what is wrong with
//! which record, does them instead.
//!
//! What was given up: nothing is written here, and no error names a record.

#![forbid(unsafe_code)]

mod columns;
mod declined;
mod hashes;
mod memory;
mod messagepack;
mod rows;

pub use columns::{Batch, batch_of};
pub use declined::{Declined, Result};
pub use hashes::ColumnHashes;
pub use memory::{StoredMemory, decode_last_used, decode_memory};
pub use rows::{OpenKeys, Place, Row, Rows};

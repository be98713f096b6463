//! The one error type: every way in which the ranker refuses.

use std::fmt;

/// Why a call was refused. Nothing was changed when one is returned.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// An argument as a whole is wrong: its shape, its range, its combination with others.
    InvalidArgument {
        /// The argument's name in the public interface.
        name: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// One row of a batch is wrong.
    InvalidRow {
        /// Its position in the batch.
        row: usize,
        /// The column at fault.
        column: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// A slot that was asked for holds no row, or a row without the vector that was asked for.
    DeadSlot(u32),
    /// The table has no slot number left.
    Full,
    /// An earlier call panicked while it changed the table: its content can't be trusted.
    Poisoned,
}

/// The crate's result.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn argument(name: &'static str, reason: impl Into<String>) -> Self {
        Self::InvalidArgument {
            name,
            reason: reason.into(),
        }
    }

    pub(crate) fn row(row: usize, column: &'static str, reason: impl Into<String>) -> Self {
        Self::InvalidRow {
            row,
            column,
            reason: reason.into(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InvalidArgument { name, reason } => write!(f, "{name}: {reason}"),
            Self::InvalidRow {
                row,
                column,
                reason,
            } => write!(f, "row {row}, column {column}: {reason}"),
            Self::DeadSlot(slot) => write!(f, "slot {slot} holds no such row"),
            Self::Full => write!(f, "the table has no slot number left"),
            Self::Poisoned => write!(
                f,
                "an earlier change of this table panicked; rebuild the table"
            ),
        }
    }
}

impl std::error::Error for Error {}

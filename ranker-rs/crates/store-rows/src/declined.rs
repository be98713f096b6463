//! The one refusal.

use std::fmt;

/// Rows that are not done here, with the reason. It holds nothing of what is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Declined(pub &'static str);

impl fmt::Display for Declined {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.0)
    }
}

impl std::error::Error for Declined {}

/// What may be declined.
pub type Result<T> = std::result::Result<T, Declined>;

//! Filters: predicates on single columns, each defined once and evaluated in two ways.
//!
//! Over a whole chunk, cheap predicates run column by column into a mask that the compiler can
//! vectorise, and the costly ones (sets, labels) only on the rows that are left. On a single row
//! the same predicates are asked one after the other.

use crate::chunk::Chunk;
use crate::error::{Error, Result};
use crate::flags;
use crate::limits::{FILTER_VALUES_MAX, KIND_MAX, STATUS_MAX};

/// Bits of every kind, of every status: bit n stands for the value n.
const EVERY_KIND: u8 = (2 << KIND_MAX) - 2;
const EVERY_STATUS: u8 = (2 << STATUS_MAX) - 2;

/// What a search admits, not yet checked. An empty set and a mask of zero admit everything.
#[derive(Debug, Clone, PartialEq)]
pub struct FilterSpec {
    /// Mask of kinds: bit n for kind n.
    pub kinds: u8,
    /// Mask of statuses: bit n for status n.
    pub statuses: u8,
    /// Subjects, one of which the row must have.
    pub subjects: Vec<u64>,
    /// Contexts, one of which the row must have.
    pub contexts: Vec<u64>,
    /// Attributes, one of which the row must have.
    pub attributes: Vec<u64>,
    /// Labels that the row must all have.
    pub labels_all: Vec<u64>,
    /// Labels of which the row must have one.
    pub labels_any: Vec<u64>,
    /// Labels of which the row must have none.
    pub labels_none: Vec<u64>,
    /// The row must be valid then: `valid_from <= t < valid_to`.
    pub valid_at: Option<i64>,
    /// The row must have been known then: `recorded <= t`.
    pub recorded_at: Option<i64>,
    /// The row must have been created then or later.
    pub created_from: Option<i64>,
    /// The row must have been created before.
    pub created_to: Option<i64>,
    /// The least importance.
    pub min_importance: f32,
    /// The least confidence.
    pub min_confidence: f32,
    /// Flags that the row must all have.
    pub include_flags: u16,
    /// Flags of which the row must have none.
    pub exclude_flags: u16,
    /// The row must not have expired then: `expires > t`.
    pub not_expired_at: Option<i64>,
    /// The least score. It bounds results and doesn't count as admission.
    pub min_score: f32,
    /// The least relevance. It bounds results and doesn't count as admission.
    pub min_relevance: f32,
}

impl Default for FilterSpec {
    fn default() -> Self {
        Self {
            kinds: 0,
            statuses: (1 << 2) | (1 << 3),
            subjects: Vec::new(),
            contexts: Vec::new(),
            attributes: Vec::new(),
            labels_all: Vec::new(),
            labels_any: Vec::new(),
            labels_none: Vec::new(),
            valid_at: None,
            recorded_at: None,
            created_from: None,
            created_to: None,
            min_importance: 0.0,
            min_confidence: 0.0,
            include_flags: 0,
            exclude_flags: flags::RETRACTED | flags::EXPIRED,
            not_expired_at: None,
            min_score: 0.0,
            min_relevance: 0.0,
        }
    }
}

/// A set of hashes, sorted.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Values(Box<[u64]>);

impl Values {
    /// Up to here a walk beats a binary search.
    const WALK_MAX: usize = 8;

    fn new(values: &[u64]) -> Self {
        let mut values = values.to_vec();
        values.sort_unstable();
        values.dedup();
        Self(values.into())
    }

    fn contains(&self, value: u64) -> bool {
        if self.0.len() <= Self::WALK_MAX {
            self.0.contains(&value)
        } else {
            self.0.binary_search(&value).is_ok()
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
enum Predicate {
    /// Always present; never has bit 0, so that it also drops free slots.
    Kinds(u8),
    Statuses(u8),
    /// `flags & mask == wanted`
    Flags {
        mask: u16,
        wanted: u16,
    },
    ValidFromBy(i64),
    ValidToAfter(i64),
    RecordedBy(i64),
    CreatedFrom(i64),
    CreatedBefore(i64),
    ExpiresAfter(i64),
    MinImportance(f32),
    MinConfidence(f32),
    Subject(u64),
    Context(u64),
    Attribute(u64),
    Subjects(Values),
    Contexts(Values),
    Attributes(Values),
    LabelsAll(Values),
    LabelsAny(Values),
    LabelsNone(Values),
}

/// How a predicate is applied to its column.
trait Evaluate {
    fn column<T>(&mut self, column: &[T], holds: impl Fn(&T) -> bool);
}

/// All rows, one byte each: 1 while every predicate held.
struct Mask<'a>(&'a mut [u8]);

impl Evaluate for Mask<'_> {
    #[inline]
    fn column<T>(&mut self, column: &[T], holds: impl Fn(&T) -> bool) {
        for (mask, value) in self.0.iter_mut().zip(column) {
            *mask &= u8::from(holds(value));
        }
    }
}

/// The listed rows, of which those are kept for which the predicate holds.
struct Listed<'a>(&'a mut Vec<u16>);

impl Evaluate for Listed<'_> {
    #[inline]
    fn column<T>(&mut self, column: &[T], holds: impl Fn(&T) -> bool) {
        self.0.retain(|row| holds(&column[usize::from(*row)]));
    }
}

impl Predicate {
    /// The one definition of every predicate.
    #[inline]
    fn apply(&self, chunk: &Chunk, to: &mut impl Evaluate) {
        match self {
            Self::Kinds(mask) => to.column(&chunk.kind, |kind| (mask >> kind) & 1 == 1),
            Self::Statuses(mask) => to.column(&chunk.status, |status| (mask >> status) & 1 == 1),
            Self::Flags { mask, wanted } => {
                to.column(&chunk.flags, |flags| flags & mask == *wanted);
            }
            Self::ValidFromBy(time) => to.column(&chunk.valid_from, |from| from <= time),
            Self::ValidToAfter(time) => to.column(&chunk.valid_to, |to| to > time),
            Self::RecordedBy(time) => to.column(&chunk.recorded, |recorded| recorded <= time),
            Self::CreatedFrom(time) => to.column(&chunk.created, |created| created >= time),
            Self::CreatedBefore(time) => to.column(&chunk.created, |created| created < time),
            Self::ExpiresAfter(time) => to.column(&chunk.expires, |expires| expires > time),
            Self::MinImportance(least) => to.column(&chunk.importance, |value| value >= least),
            Self::MinConfidence(least) => to.column(&chunk.confidence, |value| value >= least),
            Self::Subject(wanted) => to.column(&chunk.subject, |hash| hash == wanted),
            Self::Context(wanted) => to.column(&chunk.context, |hash| hash == wanted),
            Self::Attribute(wanted) => to.column(&chunk.attribute, |hash| hash == wanted),
            Self::Subjects(wanted) => to.column(&chunk.subject, |hash| wanted.contains(*hash)),
            Self::Contexts(wanted) => to.column(&chunk.context, |hash| wanted.contains(*hash)),
            Self::Attributes(wanted) => to.column(&chunk.attribute, |hash| wanted.contains(*hash)),
            Self::LabelsAll(wanted) => to.column(&chunk.labels, |labels| {
                wanted.0.iter().all(|label| labels.contains(label))
            }),
            Self::LabelsAny(wanted) => to.column(&chunk.labels, |labels| {
                labels.iter().any(|label| wanted.contains(*label))
            }),
            Self::LabelsNone(unwanted) => to.column(&chunk.labels, |labels| {
                !labels.iter().any(|label| unwanted.contains(*label))
            }),
        }
    }
}

/// A checked filter.
#[derive(Debug, Clone, PartialEq)]
pub struct Filter {
    spec: FilterSpec,
    /// Predicates that are one comparison a row.
    cheap: Vec<Predicate>,
    /// Predicates that look things up.
    costly: Vec<Predicate>,
}

impl Filter {
    /// Checks and prepares.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for unknown bits in a mask, a least value outside 0..=1, or a
    /// set of more than [`FILTER_VALUES_MAX`] values.
    pub fn new(spec: FilterSpec) -> Result<Self> {
        check(&spec)?;
        Ok(Self {
            cheap: cheap_predicates(&spec),
            costly: costly_predicates(&spec),
            spec,
        })
    }

    /// The values that the filter was made of.
    #[must_use]
    pub fn spec(&self) -> &FilterSpec {
        &self.spec
    }

    /// Fills `rows` with the admitted rows of a chunk, ascending. `mask` is scratch space.
    pub(crate) fn select(&self, chunk: &Chunk, mask: &mut Vec<u8>, rows: &mut Vec<u16>) {
        mask.clear();
        mask.resize(chunk.len(), 1);
        for predicate in &self.cheap {
            predicate.apply(chunk, &mut Mask(mask));
        }
        list(mask, rows);
        for predicate in &self.costly {
            predicate.apply(chunk, &mut Listed(rows));
        }
    }

    /// Keeps those of `rows` that are admitted.
    pub(crate) fn retain(&self, chunk: &Chunk, rows: &mut Vec<u16>) {
        for predicate in self.cheap.iter().chain(&self.costly) {
            predicate.apply(chunk, &mut Listed(rows));
        }
    }
}

/// Lists the positions of ones, without a branch per row.
fn list(mask: &[u8], rows: &mut Vec<u16>) {
    rows.clear();
    rows.resize(mask.len(), 0);
    let mut count = 0;
    for (row, bit) in mask.iter().enumerate() {
        rows[count] = row as u16;
        count += usize::from(*bit);
    }
    rows.truncate(count);
}

fn check(spec: &FilterSpec) -> Result<()> {
    for (name, mask, known) in [
        ("kinds", u16::from(spec.kinds), u16::from(EVERY_KIND)),
        (
            "statuses",
            u16::from(spec.statuses),
            u16::from(EVERY_STATUS),
        ),
        ("include_flags", spec.include_flags, flags::ALL),
        ("exclude_flags", spec.exclude_flags, flags::ALL),
    ] {
        if mask & !known != 0 {
            return Err(Error::argument(
                name,
                format!("unknown bits {:#x}", mask & !known),
            ));
        }
    }
    if spec.include_flags & spec.exclude_flags != 0 {
        return Err(Error::argument(
            "include_flags",
            format!(
                "bits {:#x} are both wanted and unwanted",
                spec.include_flags & spec.exclude_flags
            ),
        ));
    }
    for (name, least) in [
        ("min_importance", spec.min_importance),
        ("min_confidence", spec.min_confidence),
        ("min_score", spec.min_score),
        ("min_relevance", spec.min_relevance),
    ] {
        if !(0.0..=1.0).contains(&least) {
            return Err(Error::argument(name, format!("{least} is not in 0..=1")));
        }
    }
    for (name, values) in [
        ("subjects", &spec.subjects),
        ("contexts", &spec.contexts),
        ("attributes", &spec.attributes),
        ("labels_all", &spec.labels_all),
        ("labels_any", &spec.labels_any),
        ("labels_none", &spec.labels_none),
    ] {
        if values.len() > FILTER_VALUES_MAX {
            return Err(Error::argument(
                name,
                format!("{} values, at most {FILTER_VALUES_MAX}", values.len()),
            ));
        }
    }
    Ok(())
}

fn cheap_predicates(spec: &FilterSpec) -> Vec<Predicate> {
    let mut found = vec![Predicate::Kinds(match spec.kinds {
        0 => EVERY_KIND,
        kinds => kinds,
    })];
    if spec.statuses != 0 && spec.statuses != EVERY_STATUS {
        found.push(Predicate::Statuses(spec.statuses));
    }
    let mask = spec.include_flags | spec.exclude_flags;
    if mask != 0 {
        found.push(Predicate::Flags {
            mask,
            wanted: spec.include_flags,
        });
    }
    for (values, single) in [
        (&spec.subjects, Predicate::Subject as fn(u64) -> Predicate),
        (&spec.contexts, Predicate::Context),
        (&spec.attributes, Predicate::Attribute),
    ] {
        if let [value] = values[..] {
            found.push(single(value));
        }
    }
    if spec.min_importance > 0.0 {
        found.push(Predicate::MinImportance(spec.min_importance));
    }
    if spec.min_confidence > 0.0 {
        found.push(Predicate::MinConfidence(spec.min_confidence));
    }
    found.extend(spec.created_from.map(Predicate::CreatedFrom));
    found.extend(spec.created_to.map(Predicate::CreatedBefore));
    found.extend(spec.valid_at.map(Predicate::ValidFromBy));
    found.extend(spec.valid_at.map(Predicate::ValidToAfter));
    found.extend(spec.recorded_at.map(Predicate::RecordedBy));
    found.extend(spec.not_expired_at.map(Predicate::ExpiresAfter));
    found
}

fn costly_predicates(spec: &FilterSpec) -> Vec<Predicate> {
    let mut found = Vec::new();
    for (values, several) in [
        (
            &spec.subjects,
            Predicate::Subjects as fn(Values) -> Predicate,
        ),
        (&spec.contexts, Predicate::Contexts),
        (&spec.attributes, Predicate::Attributes),
    ] {
        if values.len() > 1 {
            found.push(several(Values::new(values)));
        }
    }
    for (values, labels) in [
        (
            &spec.labels_all,
            Predicate::LabelsAll as fn(Values) -> Predicate,
        ),
        (&spec.labels_any, Predicate::LabelsAny),
        (&spec.labels_none, Predicate::LabelsNone),
    ] {
        if !values.is_empty() {
            found.push(labels(Values::new(values)));
        }
    }
    found
}

//! `Rows`: stored rows on their way into a table.

// PyO3 hands lists over by value.
#![allow(clippy::needless_pass_by_value)]

use std::sync::{Mutex, MutexGuard, PoisonError};

use numpy::{PyArray1, PyArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};
use ranker_core::Id;
use ranker_core::lexical::TextPart;
use store_rows::{Batch, ColumnHashes, Declined, OpenKeys, Place, Row, batch_of};

use crate::arguments::Refusal;
use crate::table::Table;

/// Rows that are done by Python instead: raised as `ValueError`.
struct NotHere(Declined);

impl From<Declined> for NotHere {
    fn from(declined: Declined) -> Self {
        Self(declined)
    }
}

impl From<NotHere> for PyErr {
    fn from(NotHere(declined): NotHere) -> Self {
        PyValueError::new_err(declined.to_string())
    }
}

/// Rows of one partition in the order of their keys, side by side in memory.
#[pyclass(frozen, module = "pillion_ranker")]
pub struct Rows(Mutex<store_rows::Rows>);

impl Rows {
    /// A lock that is free for as long as one thread uses the rows, as it should be.
    fn lock(&self) -> MutexGuard<'_, store_rows::Rows> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Rows {
    /// Rows in plain: (key, version, value).
    #[new]
    fn new(rows: Vec<(PyBackedBytes, u64, PyBackedBytes)>) -> Self {
        let bytes = rows.iter().map(|(key, _, value)| key.len() + value.len());
        let mut packed = store_rows::Rows::with_capacity(rows.len(), bytes.sum());
        for (key, version, value) in &rows {
            packed.push(Row {
                key,
                version: *version,
                value,
            });
        }
        Self(Mutex::new(packed))
    }

    /// Rows of a data file: (key, record), each with its checksum.
    #[staticmethod]
    fn of_records(
        py: Python<'_>,
        records: Vec<(PyBackedBytes, PyBackedBytes)>,
        seed: u32,
        prefix_bytes: usize,
    ) -> PyResult<Self> {
        let packed = py.detach(|| {
            let bytes = records.iter().map(|(key, record)| key.len() + record.len());
            let mut packed = store_rows::Rows::with_capacity(records.len(), bytes.sum());
            for (key, record) in &records {
                packed.push_record(seed, prefix_bytes, key, record)?;
            }
            Ok(packed)
        });
        Ok(Self(Mutex::new(packed.map_err(NotHere)?)))
    }

    fn __len__(&self) -> usize {
        self.lock().len()
    }

    /// The ids of the keys that the values are sealed with, each once.
    fn key_ids<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let ids = self.lock().key_ids();
        PyList::new(py, ids.iter().map(|id| PyBytes::new(py, id)))
    }

    /// Opens every value where it stands. `keys` has the data keys by id, None where one was
    /// destroyed; `place` is what values are bound to before their key.
    fn open(
        &self,
        py: Python<'_>,
        keys: &Bound<'_, PyDict>,
        place: &[u8],
        plain_until: u64,
    ) -> PyResult<()> {
        let mut known = OpenKeys::default();
        for (key_id, key) in keys {
            let key: Option<PyBackedBytes> = key.extract()?;
            known
                .add(&key_id.extract::<PyBackedBytes>()?, key.as_deref())
                .map_err(NotHere)?;
        }
        let place = Place {
            prefix: place,
            plain_until,
        };
        let opened = py.detach(|| self.lock().open(&known, &place));
        Ok(opened.map_err(NotHere)?)
    }

    /// The first and the last key; None where there are no rows.
    fn bounds<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let rows = self.lock();
        let mut keys = rows.iter().map(|row| PyBytes::new(py, row.key));
        let Some(first) = keys.next() else {
            return Ok(None);
        };
        let last = keys.next_back().unwrap_or_else(|| first.clone());
        PyTuple::new(py, [first, last]).map(Some)
    }

    /// The rows as (key, version, value).
    fn to_list<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let rows = self.lock();
        PyList::new(
            py,
            rows.iter().map(|row| {
                (
                    PyBytes::new(py, row.key),
                    row.version,
                    PyBytes::new(py, row.value),
                )
            }),
        )
    }
}

/// Puts stored memories into tables of one partition.
#[pyclass(frozen, module = "pillion_ranker")]
pub struct Loader(Mutex<ColumnHashes>);

#[pymethods]
impl Loader {
    #[new]
    fn new(secret: &[u8]) -> PyResult<Self> {
        Ok(Self(Mutex::new(
            ColumnHashes::new(secret).map_err(NotHere)?,
        )))
    }

    /// Decodes opened memories and puts them into a table with what is theirs among the vectors
    /// and the accesses. Returns their slots, and how many vectors could not be used.
    fn load(
        &self,
        py: Python<'_>,
        table: &Bound<'_, Table>,
        memories: &Bound<'_, Rows>,
        vectors: Vec<Bound<'_, Rows>>,
        accesses: Vec<Bound<'_, Rows>>,
    ) -> PyResult<(Py<PyArray1<u32>>, usize)> {
        let table = &table.get().0;
        let parts = Parts::new(memories, vectors, accesses);
        let loaded = py.detach(|| -> Result<_, PyErr> {
            let batch = self.batch(&parts, table.dimension())?;
            let slots = table.upsert(&batch.rows()).map_err(Refusal::from)?;
            let texts: Vec<_> = batch.texts.iter().map(|text| plain(text)).collect();
            table
                .set_texts(batch.rows().ids, &texts)
                .map_err(Refusal::from)?;
            Ok((slots, batch.unusable_vectors))
        });
        let (slots, unusable) = loaded?;
        Ok((PyArray1::from_vec(py, slots).unbind(), unusable))
    }

    /// For tests: the columns that `load` puts into a table.
    fn columns<'py>(
        &self,
        py: Python<'py>,
        dimension: usize,
        memories: &Bound<'_, Rows>,
        vectors: Vec<Bound<'_, Rows>>,
        accesses: Vec<Bound<'_, Rows>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let batch = self.batch(&Parts::new(memories, vectors, accesses), dimension)?;
        let rows = batch.rows();
        let columns = PyDict::new(py);
        let ids = PyArray1::from_slice(py, rows.ids.as_flattened());
        columns.set_item("ids", ids.reshape([rows.len(), size_of::<Id>()])?)?;
        let vectors = PyArray1::from_slice(py, rows.vectors);
        columns.set_item("vectors", vectors.reshape([rows.len(), dimension])?)?;
        macro_rules! set {
            ($($name:ident)*) => {
                $(columns.set_item(stringify!($name), PyArray1::from_slice(py, rows.$name))?;)*
            };
        }
        set!(created last_used valid_from valid_to recorded expires importance confidence kind
            status flags subject context attribute label_offsets label_hashes has_vector);
        columns.set_item("texts", batch.texts.clone())?;
        Ok(columns)
    }
}

/// What is indexed of a memory: `pillion.service.indexed_text` says the same of it.
fn plain(text: &str) -> Vec<TextPart<'_>> {
    vec![TextPart { text, weight: 8 }]
}

/// What a step of a load is made of, held until it is done.
struct Parts {
    memories: Py<Rows>,
    vectors: Vec<Py<Rows>>,
    accesses: Vec<Py<Rows>>,
}

impl Parts {
    fn new(
        memories: &Bound<'_, Rows>,
        vectors: Vec<Bound<'_, Rows>>,
        accesses: Vec<Bound<'_, Rows>>,
    ) -> Self {
        Self {
            memories: memories.clone().unbind(),
            vectors: vectors.into_iter().map(Bound::unbind).collect(),
            accesses: accesses.into_iter().map(Bound::unbind).collect(),
        }
    }
}

impl Loader {
    fn batch(&self, parts: &Parts, dimension: usize) -> Result<Batch, NotHere> {
        let memories = parts.memories.get().lock();
        let vectors: Vec<_> = parts.vectors.iter().map(|one| one.get().lock()).collect();
        let accesses: Vec<_> = parts.accesses.iter().map(|one| one.get().lock()).collect();
        let mut hashes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(batch_of(
            &memories,
            &vectors.iter().map(|one| &**one).collect::<Vec<_>>(),
            &accesses.iter().map(|one| &**one).collect::<Vec<_>>(),
            dimension,
            &mut hashes,
        )?)
    }
}

//! Arrays in, arrays out, and the one conversion of errors.

use numpy::PyUntypedArrayMethods;
use numpy::ndarray::Dimension;
use numpy::{Element, PyArray1, PyArray2, PyArrayMethods, PyReadonlyArray, PyReadonlyArray2};
use pyo3::exceptions::{PyOverflowError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use ranker_core::{Error, Id};

/// A refusal of the core on its way to Python.
pub struct Refusal(Error);

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self(error)
    }
}

impl From<Refusal> for PyErr {
    fn from(Refusal(error): Refusal) -> Self {
        let message = error.to_string();
        match error {
            Error::Full => PyOverflowError::new_err(message),
            Error::Poisoned => PyRuntimeError::new_err(message),
            // InvalidArgument, InvalidRow, DeadSlot, and whatever the core learns to refuse.
            _ => PyValueError::new_err(message),
        }
    }
}

/// Refuses an argument that the core never gets to see.
pub fn refuse(name: &'static str, reason: &str) -> Refusal {
    Refusal(Error::InvalidArgument {
        name,
        reason: reason.to_owned(),
    })
}

/// The values of an array, row after row.
pub fn flat<'a, T: Element, D: Dimension>(
    name: &'static str,
    array: &'a PyReadonlyArray<'_, T, D>,
) -> Result<&'a [T], Refusal> {
    array
        .as_slice()
        .map_err(|_| refuse(name, "the array must be C-contiguous and aligned"))
}

/// The ids of an (n, 16) array.
pub fn ids<'a>(
    name: &'static str,
    array: &'a PyReadonlyArray2<'_, u8>,
) -> Result<&'a [Id], Refusal> {
    if array.shape()[1] != size_of::<Id>() {
        return Err(refuse(name, "the shape must be (n, 16)"));
    }
    Ok(flat(name, array)?.as_chunks().0)
}

/// The vectors of an (n, dimension) array.
pub fn vectors<'a>(
    array: &'a PyReadonlyArray2<'_, f32>,
    dimension: usize,
) -> Result<&'a [f32], Refusal> {
    if array.shape()[1] != dimension {
        return Err(refuse(
            "vectors",
            &format!("the shape must be (n, {dimension})"),
        ));
    }
    flat("vectors", array)
}

/// An (n, 16) array of ids.
pub fn id_array(py: Python<'_>, ids: &[Id]) -> PyResult<Py<PyArray2<u8>>> {
    let bytes = PyArray1::from_slice(py, ids.as_flattened());
    Ok(bytes.reshape([ids.len(), size_of::<Id>()])?.unbind())
}

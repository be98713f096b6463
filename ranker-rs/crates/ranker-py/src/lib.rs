//! The Python face of `ranker-core`: conversions only. Arrays are borrowed, the GIL is released
//! while the core works, and every refusal goes through [`arguments::Refusal`].

mod arguments;
mod hits;
mod policy;
mod rows;
mod table;

/// `pillion_ranker._native`
#[pyo3::pymodule]
mod _native {
    use pyo3::prelude::*;
    use ranker_core::lexical::{self, Languages};
    use ranker_core::{flags, kernels, limits};

    #[pymodule_export]
    use crate::hits::Hits;
    #[pymodule_export]
    use crate::policy::{Filter, Profile};
    #[pymodule_export]
    use crate::rows::{Loader, Rows};
    #[pymodule_export]
    use crate::table::Table;

    /// The name of the instruction set that this process computes with.
    #[pyfunction]
    fn cpu_path() -> PyResult<&'static str> {
        Ok(kernels::detect()
            .map_err(crate::arguments::Refusal::from)?
            .name())
    }

    /// Nanoseconds a row: filter, prior, scan, score.
    #[pyfunction]
    fn calibrate(py: Python<'_>, dimension: usize) -> PyResult<(f64, f64, f64, f64)> {
        let costs = py
            .detach(|| ranker_core::calibrate(dimension))
            .map_err(crate::arguments::Refusal::from)?;
        Ok((
            costs.filter_row,
            costs.prior_row,
            costs.scan_row,
            costs.score_row,
        ))
    }

    /// The terms of a text and the mask of the languages that it was read in.
    #[pyfunction]
    fn tokenize(text: &str) -> (Vec<String>, u32) {
        let (terms, languages) = lexical::tokenize(text);
        (terms, languages.0)
    }

    /// The words of a query, each with the terms that it stands for.
    #[pyfunction]
    fn query_words(text: &str, languages: u32) -> Vec<Vec<String>> {
        lexical::query_words(text, Languages(languages))
    }

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("FLAG_PINNED", flags::PINNED)?;
        module.add("FLAG_RETRACTED", flags::RETRACTED)?;
        module.add("FLAG_EXPIRED", flags::EXPIRED)?;
        module.add("FLAG_CONSOLIDATED", flags::CONSOLIDATED)?;
        module.add("FLAG_EPISODE", flags::EPISODE)?;
        module.add("SOURCE_SHIFT", flags::SOURCE_SHIFT)?;
        module.add("DIMENSION_MAX", limits::DIMENSION_MAX)?;
        module.add("RESULTS_MAX", limits::RESULTS_MAX)?;
        module.add("FILTER_VALUES_MAX", limits::FILTER_VALUES_MAX)?;
        module.add("ROW_LABELS_MAX", limits::ROW_LABELS_MAX)?;
        module.add("SLOT_ABSENT", limits::SLOT_ABSENT)?;
        module.add("TEXT_BYTES_MAX", limits::TEXT_BYTES_MAX)?;
        module.add("TEXT_PARTS_MAX", limits::TEXT_PARTS_MAX)?;
        module.add("PART_WEIGHT_MAX", limits::PART_WEIGHT_MAX)?;
        module.add("TIME_OPEN", limits::TIME_OPEN)?;
        Ok(())
    }
}

//! Criterion benches of the dispatch path.

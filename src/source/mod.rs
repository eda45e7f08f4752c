//! Where rows come from. Later sources stand beside `postgres`.
//!
//! The seam: a source yields rows with positions and takes back confirmations.

pub mod postgres;

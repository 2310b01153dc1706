//! Fuzz targets.

#![forbid(unsafe_code)]

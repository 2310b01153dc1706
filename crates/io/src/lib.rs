//! The storage seam.

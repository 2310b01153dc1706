//! The lines that bars are read from.
//!
//! ```text
//! ratio parse.bitcoin 3.14 goal 2.5
//! ```
//!
//! A bar is met when the value is at least the goal. A bar of the form "at most" is given as
//! goal over measured, with goal 1.

/// A measured value and what it should be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ratio {
    /// The name of the bar.
    pub(crate) name: &'static str,
    /// What was measured.
    pub(crate) value: f64,
    /// What it should be at least.
    pub(crate) goal: f64,
}

impl Ratio {
    /// Prints the line.
    pub(crate) fn print(&self) {
        println!("ratio {} {:.2} goal {}", self.name, self.value, self.goal);
    }
}

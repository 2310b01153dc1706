//! The lines that bars are read from: `ratio NAME VALUE goal GOAL`.
//!
//! A bar is met when the value is at least the goal. A bar of the form "at most" is given as
//! goal over measured, with goal 1.

/// A measured value and what it should be at least.
#[derive(Clone, Debug)]
pub struct Ratio {
    name: &'static str,
    value: f64,
    goal: f64,
}

impl Ratio {
    /// A bar that is met when `value` is at least `goal`.
    #[must_use]
    pub const fn at_least(name: &'static str, value: f64, goal: f64) -> Self {
        Self { name, value, goal }
    }

    /// A bar that is met when `value` is at most `most`.
    #[must_use]
    pub fn at_most(name: &'static str, value: f64, most: f64) -> Self {
        Self { name, value: most / value, goal: 1.0 }
    }

    /// The name of the bar.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Whether the bar is met. NaN never meets it.
    #[must_use]
    pub fn is_met(&self) -> bool {
        self.value >= self.goal
    }

    /// Prints the line.
    pub fn print(&self) {
        println!("ratio {} {:.2} goal {}", self.name, self.value, self.goal);
    }
}

#[cfg(test)]
mod tests {
    use super::Ratio;

    #[test]
    fn bars_are_met_from_the_goal_on() {
        assert!(Ratio::at_least("a", 2.0, 2.0).is_met());
        assert!(!Ratio::at_least("a", 1.9, 2.0).is_met());
        assert!(Ratio::at_most("a", 1.5, 1.5).is_met());
        assert!(!Ratio::at_most("a", 1.6, 1.5).is_met());
        assert!(!Ratio::at_least("a", f64::NAN, 1.0).is_met());
    }
}

//! The races as a table, one line each, printed as they end.

use anyhow::{Result, ensure};

use crate::child::Outcome;

/// The result that every side must have.
#[derive(Debug)]
pub(super) struct Table {
    sets: Vec<(String, String, String)>,
}

impl Table {
    pub(super) fn new() -> Self {
        println!(
            "{:13} {:>9} {:>8} {:>8} {:>8} {:>7} {:>9} {:>9} {:>10}",
            "side",
            "ms/block",
            "wall s",
            "cpu s",
            "later s",
            "others",
            "read MB",
            "write MB",
            "memory"
        );
        Self { sets: Vec::new() }
    }

    /// A new table below this one, for work of another size.
    pub(super) fn with_other_work(&self) -> Self {
        println!("on the small set:");
        Self { sets: Vec::new() }
    }

    /// Prints a race.
    pub(super) fn add(&mut self, side: &str, outcome: &Outcome) -> Result<()> {
        let figures = &outcome.figures;
        let number = |name| figures.number(name);
        let memory = match (outcome.limited, outcome.peak) {
            (false, _) => "unlimited".to_owned(),
            (true, Some(peak)) => format!("{} MiB", peak >> 20),
            (true, None) => "limited".to_owned(),
        };
        println!(
            "{side:13} {:9.2} {:8.2} {:8.2} {:8.2} {:6.0}% {:9.0} {:9.0} {memory:>10}{}",
            number("block_ms")?,
            number("wall")?,
            number("cpu")?,
            number("background")?,
            number("others")? * 100.0,
            number("read")? / 1e6,
            number("written")? / 1e6,
            if is_disturbed(outcome)? { "  disturbed" } else { "" },
        );
        let (found, set) = (figures.text("found")?.to_owned(), figures.text("set")?.to_owned());
        self.sets.push((side.to_owned(), found, set));
        Ok(())
    }

    /// All found the same coins and have the same set.
    pub(super) fn check(&self) -> Result<()> {
        for pair in self.sets.windows(2) {
            let [(one, found_one, set_one), (two, found_two, set_two)] = pair else { continue };
            ensure!(
                found_one == found_two,
                "`{one}` found {found_one}, `{two}` found {found_two}: not the same work"
            );
            ensure!(
                set_one == set_two,
                "`{one}` has the set {set_one}, `{two}` has {set_two}: not the same work"
            );
        }
        Ok(())
    }
}

pub(super) fn seconds(outcome: &Outcome) -> Result<f64> {
    outcome.figures.number("seconds")
}

pub(super) fn others(outcome: &Outcome) -> Result<f64> {
    outcome.figures.number("others")
}

pub(super) fn is_disturbed(outcome: &Outcome) -> Result<bool> {
    Ok(outcome.figures.number("disturbed")? != 0.0)
}

//! The races as a table, one line each, printed as they end.

use anyhow::Result;

use super::race::PARTS;
use crate::child::Outcome;

pub(super) fn print_head() {
    println!(
        "{:12} {:>9} {:>9} {:>8} {:>8} {:>8} {:>7} {:>9} {:>9} {:>9} {:>10}",
        "side",
        "M rows",
        "M rows/s",
        "s",
        "last s",
        "cpu s",
        "others",
        "bytes/row",
        "read/row",
        "write/row",
        "memory"
    );
}

/// Prints a race.
pub(super) fn print(side: &str, outcome: &Outcome) -> Result<()> {
    let number = |name| outcome.figures.number(name);
    let memory = match (outcome.limited, outcome.peak) {
        (false, _) => "unlimited".to_owned(),
        (true, Some(peak)) => format!("{} MiB", peak >> 20),
        (true, None) => "limited".to_owned(),
    };
    let rows = number("rows")?;
    println!(
        "{side:12} {:9.1} {:9.2} {:8.1} {:8.1} {:8.1} {:6.0}% {:9.2} {:9.2} {:9.2} {memory:>10}{}",
        rows / 1e6,
        rows / seconds(outcome)? / 1e6,
        seconds(outcome)?,
        number("finish")?,
        number("cpu")?,
        number("others")? * 100.0,
        number("bytes")? / rows,
        number("read")? / rows,
        number("written")? / rows,
        if is_disturbed(outcome)? { "  disturbed" } else { "" },
    );
    Ok(())
}

pub(super) fn seconds(outcome: &Outcome) -> Result<f64> {
    outcome.figures.number("seconds")
}

pub(super) fn is_disturbed(outcome: &Outcome) -> Result<bool> {
    Ok(outcome.figures.number("disturbed")? != 0.0)
}

/// The seconds of each tenth of the rows.
pub(super) fn parts(outcome: &Outcome) -> Result<Vec<f64>> {
    (0..PARTS).map(|part| outcome.figures.number(&format!("part_{part}"))).collect()
}

//! All rows of a table in a Markdown file have the same number of cells.
//!
//! A missing cell moves the others one column to the left, and an extra cell is not shown: the
//! table then does not say what was meant. Fenced code is left out. A `|` in a cell is written
//! `\|`, in backticks too.

use super::Finding;
use super::tree::{File, Tree};

/// Checks all Markdown files.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    tree.files.iter().filter(|file| file.has_ending("md")).flat_map(check_file).collect()
}

fn check_file(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    let (mut fenced, mut columns) = (false, None);
    for (number, line) in file.lines() {
        let line = line.trim();
        fenced ^= line.starts_with("```");
        if fenced || !line.starts_with('|') {
            columns = None;
            continue;
        }
        let (cells, columns) = (cells(line), *columns.get_or_insert_with(|| cells(line)));
        if cells != columns {
            let message = format!("{cells} cells in a table of {columns} columns; make them equal");
            findings.push(Finding::error(&file.path, number, message));
        }
    }
    findings
}

/// How many cells a row has.
fn cells(row: &str) -> usize {
    let bars = row.replace("\\\\", "").replace("\\|", "").matches('|').count();
    // A row may leave out its last bar.
    if row.ends_with('|') { bars - 1 } else { bars }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_have_as_many_cells_as_their_head() {
        let lines = |text: &str| -> Vec<usize> {
            check_file(&File::new("x.md", text)).iter().map(|finding| finding.line).collect()
        };
        let head = "| a | b |\n|---|---|\n";
        assert_eq!(lines(&format!("{head}| 1 | 2 |\n| `\\|` | 2\n\n| one |\n")), [0; 0]);
        assert_eq!(lines(&format!("{head}| 1 |\n| 1 | 2 |\n| 1 | 2 | 3 |\n")), [3, 5]);
        assert_eq!(lines(&format!("{head}| `a|b` | 2 |\n")), [3]);
        assert_eq!(lines("```\n| a |\n| a | b |\n```\n"), [0; 0]);
    }
}

//! `docs/records-jsonl.md` is true: its examples are one run, and answer as it says.

use std::fs;

use serde_json::Value;

use super::store::Store;

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/records-jsonl.md");
/// What stands before an answer.
const ANSWER: &str = "→ ";

#[test]
fn every_example_answers_as_the_document_says() {
    let mut lines = Vec::new();
    let mut answers: Vec<Value> = Vec::new();
    let mut is_example = false;
    let document = fs::read_to_string(DOCUMENT).unwrap();
    for line in document.lines() {
        if line.starts_with("```") {
            is_example = line == "```text";
        } else if let Some(answer) = line.strip_prefix(ANSWER) {
            answers.push(serde_json::from_str(answer).unwrap());
        } else if is_example {
            lines.push(line);
        }
    }
    assert!(lines.len() > 80, "the examples are found");
    let found = Store::new().apply_text(&(lines.join("\n") + "\n"));
    assert_eq!(found.len(), lines.len());
    assert_eq!(answers.len(), lines.len(), "every example has its answer");
    for ((line, found), expected) in lines.iter().zip(&found).zip(&answers) {
        assert_eq!(found, expected, "{line}");
    }
}

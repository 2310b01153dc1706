//! What a child measured, as lines of its standard output.
//!
//! ```text
//! figure seconds 12.5
//! figure digest 3f09…
//! ```

use std::collections::BTreeMap;
use std::fmt::Display;

use anyhow::{Context as _, Result};

/// Named values. Children print them, the parent collects them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures(BTreeMap<String, String>);

impl Figures {
    /// Prints one figure, in a child.
    pub fn report(name: &str, value: impl Display) {
        println!("figure {name} {value}");
    }

    /// Takes a line if it is a figure.
    pub fn take(&mut self, line: &str) -> bool {
        let mut words = line.split(' ');
        let (Some("figure"), Some(name), Some(value), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return false;
        };
        self.0.insert(name.to_owned(), value.to_owned());
        true
    }

    /// Replaces a figure.
    pub fn set(&mut self, name: &str, value: &str) {
        self.0.insert(name.to_owned(), value.to_owned());
    }

    /// A figure as the child reported it.
    pub fn text(&self, name: &str) -> Result<&str> {
        self.0.get(name).map(String::as_str).with_context(|| format!("no figure `{name}`"))
    }

    /// A figure that is a number.
    pub fn number(&self, name: &str) -> Result<f64> {
        let text = self.text(name)?;
        text.parse().with_context(|| format!("the figure `{name}` is `{text}`, not a number"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_distinguished_from_other_lines() {
        let mut figures = Figures::default();
        assert!(figures.take("figure seconds 1.5"));
        for line in ["", "figure", "figure a", "figure a 1 2", "ratio a 1 goal 1"] {
            assert!(!figures.take(line), "{line}");
        }
        assert_eq!(figures.number("seconds").unwrap(), 1.5);
        assert!(figures.number("digest").is_err());
        assert!(figures.take("figure digest ff"));
        assert_eq!(figures.text("digest").unwrap(), "ff");
        assert!(figures.number("digest").is_err());
    }
}

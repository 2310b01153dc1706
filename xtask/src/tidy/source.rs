//! Just enough Rust to know what is code, where functions begin and end, and what is only a test.
//!
//! [`Source::new`] copies the text and replaces by blanks whatever is inside comments, strings and
//! character literals. Line ends stay, so a position in the copy is on the same line as in the
//! text. In such a copy every brace and every word is code, and the rest is counting:
//!
//! - a function goes from its `fn NAME` to the brace that closes the first `{` after it, unless a
//!   `;` outside parentheses comes first (a declaration without a body);
//! - what follows `#[cfg(test)]` up to its closing brace is test code.
//!
//! The special cases of the lexer: `/* /* */ */` nests; `r##"…"##` ends at its own number of `#`;
//! `'a'` is a character but `'a` is a lifetime; `b"…"`, `c"…"` and `br"…"` are strings; `r#name`
//! is a name.

use std::ops::RangeInclusive;

/// A Rust file with everything blanked that is not code.
pub(crate) struct Source {
    code: String,
}

/// A function and the lines it takes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Function {
    /// Its name alone, without module or type.
    pub name: String,
    /// From the line of `fn` to the line of the closing brace, counted from 1.
    pub lines: RangeInclusive<usize>,
}

impl Source {
    /// Blanks the text.
    pub(crate) fn new(text: &str) -> Self {
        Self { code: blank(text) }
    }

    /// The code, line by line, with blanks for comments and literals.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        (1..).zip(self.code.lines())
    }

    /// Every function with a body.
    pub(crate) fn functions(&self) -> Vec<Function> {
        let mut functions = Vec::new();
        for (at, _) in self.code.match_indices("fn ") {
            let (before, after) = self.code.split_at(at);
            let name: String = after.chars().skip(3).take_while(|c| is_word(*c)).collect();
            if before.ends_with(is_word) || name.is_empty() {
                continue;
            }
            if let Some(length) = item_length(after) {
                functions.push(Function { name, lines: self.line_range(at, length) });
            }
        }
        functions
    }

    /// The lines of items marked `#[cfg(test)]`.
    pub(crate) fn test_lines(&self) -> Vec<RangeInclusive<usize>> {
        let marks = self.code.match_indices("#[cfg(test)]");
        let items = marks.filter_map(|(at, mark)| {
            let length = mark.len() + item_length(self.code.get(at + mark.len()..)?)?;
            Some(self.line_range(at, length))
        });
        items.collect()
    }

    /// The lines of the item that begins on this line, attributes first, to its last brace or its
    /// semicolon.
    pub(crate) fn item_lines(&self, line: usize) -> Option<RangeInclusive<usize>> {
        let lines = self.code.split_inclusive('\n');
        let at = lines.take(line - 1).map(str::len).sum();
        let mut end = at;
        let mut rest = self.code.get(at..)?;
        // Brackets of attributes hold no item.
        while let Some(attribute) = rest.trim_start().strip_prefix('#') {
            let close = attribute.find(']')? + 1;
            rest = attribute.get(close..)?;
            end = self.code.len() - rest.len();
        }
        let length = match item_length(rest) {
            Some(length) => length,
            None => rest.find(';')?,
        };
        Some(self.line_range(at, end - at + length))
    }

    /// The names of the modules that the file declares, with their lines.
    pub(crate) fn modules(&self) -> Vec<(usize, &str)> {
        let mut modules = Vec::new();
        for (number, line) in self.lines() {
            let Some(at) = line.find("mod ") else { continue };
            let (before, after) = line.split_at(at);
            let name = after.trim_start_matches("mod ").trim_end_matches([';', '{', ' ', '}']);
            if !before.ends_with(is_word) && name.chars().all(is_word) {
                modules.push((number, name));
            }
        }
        modules
    }

    fn line_range(&self, at: usize, length: usize) -> RangeInclusive<usize> {
        let lines_before =
            |end: usize| self.code.bytes().take(end).filter(|byte| *byte == b'\n').count();
        lines_before(at) + 1..=lines_before(at + length) + 1
    }
}

/// How many bytes an item takes up to its closing brace, or `None` when it has no body.
fn item_length(code: &str) -> Option<usize> {
    let mut parentheses = 0_usize;
    let mut braces = 0_usize;
    for (at, c) in code.char_indices() {
        match c {
            '(' | '[' => parentheses += 1,
            ')' | ']' => parentheses = parentheses.saturating_sub(1),
            '{' => braces += 1,
            '}' if braces <= 1 => return Some(at),
            '}' => braces -= 1,
            ';' if parentheses == 0 && braces == 0 => return None,
            _ => {}
        }
    }
    None
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Replaces comments and the insides of literals by blanks.
fn blank(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let skipped = match c {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => block_comment(rest),
            '"' => string(rest),
            '\'' => character(rest),
            'r' if !code.ends_with(is_word) || code.ends_with(['b', 'c']) => raw_string(rest),
            _ => 0,
        };
        if skipped == 0 {
            code.push(c);
            rest = rest.get(c.len_utf8()..).unwrap_or_default();
            continue;
        }
        let (literal, after) = rest.split_at(skipped);
        code.extend(literal.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        rest = after;
    }
    code
}

/// The length of the comment that the text begins with.
fn block_comment(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(rest) = text.get(at..) {
        if rest.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            let Some(c) = rest.chars().next() else { break };
            at += c.len_utf8();
        }
    }
    text.len()
}

/// The length of the string that the text begins with.
fn string(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// The length of the character literal that the text begins with, or 0 for a lifetime.
fn character(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    match chars.next() {
        Some((_, '\\')) => {
            chars.next();
            chars.find(|(_, c)| *c == '\'').map_or(0, |(at, _)| at + 1)
        }
        Some(_) => chars.next().filter(|(_, c)| *c == '\'').map_or(0, |(at, _)| at + 1),
        None => 0,
    }
}

/// The length of the raw string that the text begins with, or 0 when it is a name.
fn raw_string(text: &str) -> usize {
    let after_r = text.get(1..).unwrap_or_default();
    let hashes = after_r.len() - after_r.trim_start_matches('#').len();
    if after_r.get(hashes..).is_none_or(|rest| !rest.starts_with('"')) {
        return 0;
    }
    let end = format!("\"{}", "#".repeat(hashes));
    let inside = 1 + hashes + 1;
    let found = text.get(inside..).and_then(|rest| rest.find(&end));
    found.map_or(text.len(), |at| inside + at + end.len())
}

#[cfg(test)]
mod tests;

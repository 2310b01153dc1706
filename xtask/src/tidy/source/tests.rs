//! Tests of the lexer: what it blanks, and what it counts.

use super::*;

fn code(text: &str) -> String {
    blank(text)
}

fn function_lines(text: &str) -> Vec<(String, usize)> {
    let functions = Source::new(text).functions();
    functions.into_iter().map(|found| (found.name, found.lines.count())).collect()
}

#[test]
fn comments_and_literals_are_blanked() {
    let cases = [
        ("a // }\nb", "a\nb"),
        ("a /* /* } */ } */ b", "a b"),
        (r#"x("}\"}") }"#, "x( ) }"),
        (r###"x(r#"}"}"#) }"###, "x( ) }"),
        (r##"x(br"}") }"##, "x(b ) }"),
        (r"('{', '\'', '\u{7d}', b'}')", "( , , , b )"),
    ];
    for (text, kept) in cases {
        let code = code(text);
        assert_eq!(code.len(), text.len(), "{text}");
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(code.lines().map(words).collect::<Vec<_>>().join("\n"), kept, "{text}");
    }
}

#[test]
fn lifetimes_and_raw_names_are_code() {
    for text in ["fn a<'a>(x: &'a str) -> &'a str {}", "r#type { bar\"", "for r in 0..1 { var }"] {
        assert_eq!(code(text).matches(['{', '}']).count(), text.matches(['{', '}']).count());
    }
    assert!(code("fn a<'a>(x: &'a str) {}").contains("<'a>(x: &'a str)"));
}

#[test]
fn unfinished_literals_reach_to_the_end() {
    for text in ["\"}", "/* }", "r#\"}\"", "// }", "'", "r", "b'"] {
        assert!(!code(text).contains('}'), "{text}");
    }
}

#[test]
fn functions_are_measured_from_fn_to_brace() {
    let text = "\
pub fn one() {}

/// fn not_this() {
fn two<const N: usize>(
    x: [u8; 4],
) -> impl Fn(u8) -> u8
where
    u8: Copy,
{
    let open = '{';
    if true { \"}\" } else { \"{\" };
}

trait T {
    fn declared(&self, x: [u8; 2]);
    fn given(&self) {
        fn inner() {}
    }
}
type Pointer = fn (u8);
";
    let expected = [("one", 1), ("two", 9), ("given", 3), ("inner", 1)];
    let expected = expected.map(|(name, lines)| (name.to_owned(), lines));
    assert_eq!(function_lines(text), expected);
}

#[test]
fn test_modules_are_found() {
    let text = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\nfn c() {}\n";
    assert_eq!(Source::new(text).test_lines(), [2..=5]);
    assert_eq!(Source::new("#[cfg(test)]\nmod tests;\nfn a() {}\n").test_lines(), []);
}

#[test]
fn modules_are_found() {
    let text = "mod a;\npub(crate) mod b {\n}\n// mod c;\nlet mod_d = 1;\n";
    assert_eq!(Source::new(text).modules(), [(1, "a"), (2, "b")]);
}

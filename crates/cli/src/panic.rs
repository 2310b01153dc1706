//! How the command ends when it finds a mistake of its own, or the system gives it no thread.
//!
//! A panic in any thread prints one sentence and ends the process with exit code 101, without
//! running the rest of the program: the stores are left as after a crash, which they recover from,
//! and no other thread waits for one that is gone. With `RUST_BACKTRACE` set, the standard report
//! with the backtrace takes the place of the sentence.

use std::env;
use std::panic;
use std::process;

/// The exit code that Rust programs have after a panic.
const EXIT_CODE: i32 = 101;

/// How panics of the standard library begin when the system refuses a thread.
const REFUSALS: [&str; 2] = ["failed to spawn thread", "failed to allocate an alternative stack"];

/// Makes every panic from here on end the process with a sentence.
pub(crate) fn report() {
    let standard = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if env::var_os("RUST_BACKTRACE").is_some_and(|value| value != "0") {
            standard(info);
            process::exit(EXIT_CODE);
        }
        let message = info.payload_as_str().unwrap_or("no message");
        let place = info.location().map(ToString::to_string);
        let (sentence, exit_code) = sentence(message, place.as_deref());
        eprintln!("error: {sentence}");
        process::exit(exit_code);
    }));
}

/// The message for the user, and the exit code.
fn sentence(message: &str, place: Option<&str>) -> (String, i32) {
    let message = message.replace('\n', " ");
    // The standard library panics where the system refuses a thread or the memory for its stacks.
    if REFUSALS.iter().any(|refusal| message.starts_with(refusal)) {
        let sentence = format!(
            "the system refused a thread ({message}); raise the limits of the process (ulimit -v, \
             ulimit -u) or of its container"
        );
        return (sentence, 1);
    }
    let place = place.map_or_else(String::new, |place| format!(" at {place}"));
    let sentence = format!(
        "varve has a bug: {message}{place}; please report it with what RUST_BACKTRACE=1 adds; what \
         was stored is safe"
    );
    (sentence, EXIT_CODE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bug_is_one_line_with_its_place_and_a_refused_thread_is_no_bug() {
        let (shown, exit_code) = sentence("left is not right\n left: 1", Some("set.rs:7:9"));
        assert!(shown.starts_with("varve has a bug: left is not right"), "{shown}");
        assert!(shown.contains("at set.rs:7:9; please report it"), "{shown}");
        assert_eq!((shown.lines().count(), exit_code), (1, EXIT_CODE));
        let (shown, exit_code) = sentence("failed to spawn thread: Os { code: 11 }", None);
        assert!(shown.contains("ulimit -u") && !shown.contains("bug"), "{shown}");
        assert_eq!(exit_code, 1);
        let refused = "failed to allocate an alternative stack: Cannot allocate memory";
        assert_eq!(sentence(refused, None).1, 1);
    }
}

//! How the command ends when it finds a mistake of its own, or the system gives it no thread.
//!
//! A panic in any thread prints one sentence and ends the process with exit code 101, without
//! running the rest of the program: the stores are left as after a crash, which they recover from,
//! and no other thread waits for one that is gone. Whoever sets `RUST_BACKTRACE` gets the standard
//! report, with the backtrace, in place of the sentence.

use std::env;
use std::panic::{self, PanicHookInfo};
use std::process;

/// The exit code that Rust programs have after a panic.
const EXIT_CODE: i32 = 101;

/// Makes every panic from here on end the process with a sentence.
pub(crate) fn report() {
    let standard = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if env::var_os("RUST_BACKTRACE").is_some_and(|value| value != "0") {
            standard(info);
            process::exit(EXIT_CODE);
        }
        let (sentence, exit_code) = sentence(info);
        eprintln!("error: {sentence}");
        process::exit(exit_code);
    }));
}

/// What to tell the user, and the exit code.
fn sentence(info: &PanicHookInfo<'_>) -> (String, i32) {
    let message = info.payload_as_str().unwrap_or("no message").replace('\n', " ");
    // `std::thread::spawn` panics where the system refuses a thread.
    if message.starts_with("failed to spawn thread") {
        let sentence = format!(
            "the system refused a thread ({message}); raise the limits of the process (ulimit -v, \
             ulimit -u) or of its container"
        );
        return (sentence, 1);
    }
    let place = info.location().map_or_else(String::new, |place| format!(" at {place}"));
    let sentence = format!(
        "varve has a bug: {message}{place}; please report it with what RUST_BACKTRACE=1 adds; what \
         was stored is safe"
    );
    (sentence, EXIT_CODE)
}

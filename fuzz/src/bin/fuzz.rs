//! The program that `cargo xtask fuzz` builds and runs: all targets, driven by libFuzzer.
//!
//! - `VARVE_FUZZ_TARGET=NAME fuzz [OPTION…] FOLDER` fuzzes, with libFuzzer's options;
//! - `VARVE_FUZZ_TARGET=NAME fuzz FILE` runs one input;
//! - `fuzz seed FOLDER` writes the examples of every target to `FOLDER/TARGET/` and prints the
//!   names of all targets.

#![no_main]
#![forbid(unsafe_code)]

use libfuzzer_sys::fuzz_target;
use std::path::Path;
use std::sync::LazyLock;
use std::{env, fs, io, process};
use varve_fuzz::examples::Examples;
use varve_fuzz::{Target, target, targets};

static TARGET: LazyLock<&Target> = LazyLock::new(|| {
    let name = env::var("VARVE_FUZZ_TARGET").unwrap_or_default();
    target(&name).unwrap_or_else(|| stop(&format!("there is no fuzz target `{name}`")))
});

fuzz_target!(init: begin(), |bytes: &[u8]| (TARGET.run)(bytes));

/// Runs before libFuzzer looks at the arguments.
fn begin() {
    let mut args = env::args().skip(1);
    if args.next().as_deref() == Some("seed") {
        let folder = args.next().unwrap_or_else(|| stop("`fuzz seed` wants a folder"));
        if let Err(error) = write_seeds(Path::new(&folder)) {
            stop(&format!("cannot write the examples to {folder}: {error}"));
        }
        process::exit(0);
    }
    LazyLock::force(&TARGET);
}

fn write_seeds(folder: &Path) -> io::Result<()> {
    let examples = Examples::with_data();
    for target in targets() {
        let folder = folder.join(target.name);
        fs::create_dir_all(&folder)?;
        for (number, seed) in (target.seeds)(&examples).iter().enumerate() {
            fs::write(folder.join(format!("example-{number}")), seed)?;
        }
        println!("{}", target.name);
    }
    Ok(())
}

fn stop(message: &str) -> ! {
    eprintln!("{message}");
    process::exit(2)
}

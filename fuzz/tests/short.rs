//! The short form of fuzzing: every target for about a second, on the same inputs every time.
//!
//! A finding is written to a file, and the panic says how to run it again.

use std::panic::catch_unwind;
use std::path::Path;
use std::time::{Duration, Instant};
use varve_fuzz::examples::Examples;
use varve_fuzz::mutate::Mutator;
use varve_fuzz::{target, targets};

/// The inputs come in the same order every time; how far it gets depends on the machine.
const TIME: Duration = Duration::from_secs(1);

fn run(name: &str) {
    let target = target(name).expect("the list below names only targets");
    let seeds = (target.seeds)(&Examples::built_in());
    seeds.iter().for_each(|seed| run_one(name, target.run, seed));
    let mut mutator = Mutator::new(&seeds, 1);
    let start = Instant::now();
    let mut runs = 0_u64;
    while start.elapsed() < TIME {
        run_one(name, target.run, &mutator.next_input());
        runs += 1;
    }
    println!("{name}: {runs} inputs");
}

fn run_one(name: &str, run: fn(&[u8]), input: &[u8]) {
    if catch_unwind(|| run(input)).is_err() {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("finding-{name}"));
        std::fs::write(&path, input).expect("cargo gives a folder for tests to write to");
        panic!(
            "the fuzz target `{name}` has a finding; run it again with\n\
             cargo xtask fuzz {name} {}",
            path.display()
        );
    }
}

macro_rules! short {
    ($($name:ident),* $(,)?) => {
        $(#[test]
        fn $name() {
            run(stringify!($name));
        })*

        #[test]
        fn every_target_is_run() {
            let names: Vec<&str> = targets().map(|target| target.name).collect();
            assert_eq!(names, [$(stringify!($name)),*]);
        }
    };
}

short! {
    sha256_lanes,
    compact_size,
    varint,
    text,
    script,
    compressed_script,
    compressed_output,
    transaction,
    legacy_transaction,
    extended_transaction,
    block,
    proof,
    block_file,
    script_inputs,
    frame,
    segment_header,
    page,
    page_file_header,
    envelope,
    log_checkpoint,
    lock_file,
    block_row,
    tx_offsets,
    packed_header,
    packed_chunk,
    block_manifest,
    packed_coin,
    run_leaf,
    undo_record,
    set_manifest,
    run_file,
    window_file,
    snapshot,
    search_leaf,
    record_slot,
    record_transaction,
    record_inpoints,
    record_meta,
    utxo_wrapper,
    record_leaf,
    p2p_message,
    commit,
    electrum_request,
    conduit_body,
}

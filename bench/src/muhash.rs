//! `muhash`: adding coins to a MuHash3072, in one thread.
//!
//! The bar is "at most 2.5 µs an element", with elements as long as the bytes of a P2WPKH coin. The
//! best of many short rounds counts, because noise only adds time.

use std::hint::black_box;
use std::time::{Duration, Instant};

use varve_bench::ratio::Ratio;
use varve_types::muhash::MuHash;

use crate::Effort;

/// Outpoint 36, height and coinbase 4, value 8, script length 1, script 22.
const ELEMENT: usize = 71;
const ROUND: u32 = 2000;
const GOAL_NANOSECONDS: f64 = 2500.0;

pub(crate) fn run(effort: Effort) -> Result<(), String> {
    let duration = Duration::from_secs(if effort == Effort::Full { 20 } else { 4 });
    let mut set = MuHash::new();
    let mut element = [7; ELEMENT];
    let mut best = Duration::MAX;
    let start = Instant::now();
    while start.elapsed() < duration {
        let round = Instant::now();
        for number in 0..ROUND {
            for (byte, digit) in element.iter_mut().zip(number.to_le_bytes()) {
                *byte = digit;
            }
            set.insert(black_box(&element));
        }
        best = best.min(round.elapsed());
    }
    let finalize = (0..20).map(|_| {
        let start = Instant::now();
        black_box(black_box(&set).finalize());
        start.elapsed()
    });
    let nanoseconds = best.as_nanos() as f64 / f64::from(ROUND);
    println!("{nanoseconds:.0} ns an element");
    println!("{:.1} ms to finalize", finalize.min().unwrap_or_default().as_secs_f64() * 1e3);
    Ratio::at_most("muhash.element", nanoseconds, GOAL_NANOSECONDS).print();
    Ok(())
}

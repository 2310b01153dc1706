//! The forecast holds the bar, and its sizes are those of real files.

use super::*;

/// At most one byte for every byte of block data, and never more runs than allowed.
#[test]
fn a_hundred_thousand_blocks_write_less_than_they_are() {
    // With coins as old as mainnet's the oldest run is never a third dead; with young ones it is.
    for (age, rewrites) in [(300_000, 0..1), (10_000, 1..4)] {
        let forecast = Forecast::of(&Parameters::default(), 100_000, age);
        println!("{forecast:.3?} {:.3}", forecast.total());
        assert!(forecast.total() <= 1.0, "{forecast:?}");
        assert!(forecast.most_runs <= 12, "{forecast:?}");
        assert!(rewrites.contains(&forecast.oldest_rewrites), "{forecast:?}");
    }
}

#[test]
fn small_flushes_and_a_large_fan_in_write_more() {
    let default = Forecast::of(&Parameters::default(), 100_000, 300_000);
    let other = Parameters { flush_interval: 64, fan_in: 8, ..Parameters::default() };
    let other = Forecast::of(&other, 100_000, 300_000);
    assert!(other.merged > 1.5 * default.merged, "what the default is chosen over: {other:?}");
    for (flush_interval, fan_in) in [(256, 4), (256, 3), (384, 4), (512, 4), (512, 3), (1024, 4)] {
        let p = Parameters { flush_interval, fan_in, ..Parameters::default() };
        let f = Forecast::of(&p, 100_000, 300_000);
        println!("{flush_interval} {fan_in} {f:.3?} {:.3}", f.total());
    }
}

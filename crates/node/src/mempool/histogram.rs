//! Fee histograms: rates in descending order, each with the virtual bytes that pay it.
//!
//! Two protocols cut the same walk into bins differently:
//!
//! | | a bin ends when | the bin's rate |
//! |---|---|---|
//! | Electrum | it has 100,000 vB, each later one 10 % more | that of its last transaction |
//! | Esplora | it has more than 50,000 vB and the rate changes | that of its last transaction |
//!
//! Both walk all transactions by their own rate, which are kept in order.

use super::fee_rate::FeeRate;
use super::version::Version;

/// A bin: its rate and its virtual bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeeBin {
    /// The lowest rate in the bin.
    pub rate: FeeRate,
    /// What pays this rate or more, and less than the bin before.
    pub vsize: u64,
}

/// Electrum: virtual bytes of the first bin.
const ELECTRUM_BIN: u64 = 100_000;
/// Esplora: virtual bytes after which a bin ends.
const ESPLORA_BIN: u64 = 50_000;

impl Version {
    /// The histogram of `mempool.get_fee_histogram`.
    #[must_use]
    pub fn electrum_histogram(&self) -> Vec<FeeBin> {
        let mut size = ELECTRUM_BIN;
        self.bins(|bin, _| {
            let full = bin.vsize >= size;
            if full {
                size += size / 10;
            }
            full
        })
    }

    /// The histogram of Esplora's `/mempool`.
    #[must_use]
    pub fn esplora_histogram(&self) -> Vec<FeeBin> {
        self.bins(|bin, next| bin.vsize > ESPLORA_BIN && bin.rate != next)
    }

    /// Bins of the rates in descending order; `ends` is asked with a bin and the rate behind it.
    fn bins(&self, mut ends: impl FnMut(&FeeBin, FeeRate) -> bool) -> Vec<FeeBin> {
        let mut bins = Vec::new();
        let mut open: Option<FeeBin> = None;
        for ((rate, _), vsize) in self.by_rate.iter_back() {
            if let Some(bin) = open.take_if(|bin| ends(bin, *rate)) {
                bins.push(bin);
            }
            let before = open.map_or(0, |bin| bin.vsize);
            open = Some(FeeBin { rate: *rate, vsize: before + vsize });
        }
        bins.extend(open);
        bins
    }
}

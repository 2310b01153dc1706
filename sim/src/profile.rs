//! What a chain looks like: one table per profile.
//!
//! The `mainnet` table holds the figures measured on real blocks above height 900,000; the chain
//! it gives is checked against the figures themselves (see [`stats`](crate::stats)), not against
//! this table. `dense` is the smallest transactions that still move many coins. `bsv` is few large
//! transactions with data in their outputs.

use crate::script::Kind;

/// Which kind of chain to generate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// Bitcoin's main chain after height 900,000.
    Mainnet,
    /// Small transactions: as many coins made and spent a block as fit.
    Dense,
    /// BSV: large transactions, big data outputs, now and then 20,000 outputs.
    Bsv,
}

impl Profile {
    /// The name on the command line and in `expected.json`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Mainnet => "mainnet",
            Self::Dense => "dense",
            Self::Bsv => "bsv",
        }
    }

    pub(crate) const fn table(self) -> &'static Table {
        match self {
            Self::Mainnet => &MAINNET,
            Self::Dense => &DENSE,
            Self::Bsv => &BSV,
        }
    }
}

impl std::str::FromStr for Profile {
    type Err = ParseProfileError;

    fn from_str(name: &str) -> Result<Self, ParseProfileError> {
        [Self::Mainnet, Self::Dense, Self::Bsv]
            .into_iter()
            .find(|profile| profile.name() == name)
            .ok_or_else(|| ParseProfileError { name: name.to_owned() })
    }
}

/// A name that is not a profile's.
#[derive(Debug, thiserror::Error)]
#[error("no profile is named {name:?}: use mainnet, dense or bsv")]
pub struct ParseProfileError {
    name: String,
}

/// A range of a distribution: with `weight`, a number of `low..=high`, the least of `skew` draws.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    pub(crate) weight: u32,
    pub(crate) low: u32,
    pub(crate) high: u32,
    pub(crate) skew: u32,
}

impl Span {
    /// The mean of the range, in thousandths.
    pub(crate) fn mean_per_thousand(&self) -> u64 {
        u64::from(self.low) * 1000
            + u64::from(self.high - self.low) * 1000 / u64::from(self.skew + 1)
    }
}

/// The mean of a whole distribution, in thousandths.
pub(crate) fn mean_per_thousand(table: &[Span]) -> u64 {
    let total: u64 = table.iter().map(|span| u64::from(span.weight)).sum();
    let sum: u64 = table.iter().map(|span| u64::from(span.weight) * span.mean_per_thousand()).sum();
    sum / total
}

/// What an output is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Carries a share of the transaction's value.
    Pay(Kind),
    /// Carries less than 1,000 satoshi, and can be spent together with others.
    Small(Kind),
    /// P2TR dust that nobody ever spends.
    Dust,
    /// `OP_RETURN` and bytes.
    Data,
}

/// A row of the script mix.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mix {
    pub(crate) weight: u32,
    pub(crate) purpose: Purpose,
}

/// Where inputs come from, in thousandths.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ages {
    /// Outputs of the same block.
    pub(crate) same_block: u32,
    /// 1 to 144 blocks old.
    pub(crate) young: u32,
    /// 145 to 4,320 blocks old; what is left to 1,000 is older still.
    pub(crate) old: u32,
    /// The ages inside `young`.
    pub(crate) young_ages: &'static [Span],
}

/// Everything that makes one profile.
#[derive(Debug)]
pub(crate) struct Table {
    /// Transactions a block, without the coinbase.
    pub(crate) transactions: u32,
    /// Inputs a transaction.
    pub(crate) inputs: &'static [Span],
    /// Outputs a transaction.
    pub(crate) outputs: &'static [Span],
    /// What the outputs are.
    pub(crate) mix: &'static [Mix],
    /// Bytes after `OP_RETURN`.
    pub(crate) data: &'static [Span],
    /// Bytes of an inscription in a taproot script path.
    pub(crate) inscription: &'static [Span],
    /// How old spent coins are.
    pub(crate) ages: Ages,
    /// Coins that the warm-up creates, in blocks' worth of inputs.
    pub(crate) stock_blocks: u64,
    /// Satoshi per 1,000 virtual bytes.
    pub(crate) fee_rate: Span,
    /// Interval in blocks between transactions with more than 20,000 outputs; 0 for never.
    pub(crate) giant_every: u32,
    /// BSV rules: no witness, FORKID signatures, no weight limit.
    pub(crate) bsv: bool,
}

const fn span(weight: u32, low: u32, high: u32, skew: u32) -> Span {
    Span { weight, low, high, skew }
}

const fn pay(weight: u32, kind: Kind) -> Mix {
    Mix { weight, purpose: Purpose::Pay(kind) }
}

const fn mix(weight: u32, purpose: Purpose) -> Mix {
    Mix { weight, purpose }
}

/// Blocks above 900,000: 1.87 inputs and 2.60 outputs a transaction, 410 bytes, 3,300 of them.
static MAINNET: Table = Table {
    transactions: 3_300,
    inputs: &[span(850, 1, 1, 1), span(90, 2, 2, 1), span(50, 3, 10, 3), span(10, 11, 211, 3)],
    outputs: &[span(170, 1, 1, 1), span(610, 2, 2, 1), span(210, 3, 10, 4), span(14, 11, 100, 5)],
    mix: &[
        // P2WPKH, 50.9 %, of which a little is worth less than 1,000 satoshi.
        pay(4_740, Kind::P2wpkh),
        mix(350, Purpose::Small(Kind::P2wpkh)),
        // OP_RETURN, 17.8 %.
        mix(1_780, Purpose::Data),
        // P2TR, 16.3 %: half of it the dust that is never spent.
        mix(800, Purpose::Dust),
        pay(710, Kind::P2tr),
        pay(120, Kind::Inscription),
        // P2PKH 7.3 %, P2SH 4.8 %, P2WSH 2.4 %, P2A 0.5 %, and traces of the oldest kinds.
        pay(725, Kind::P2pkh),
        pay(330, Kind::P2shWpkh),
        pay(150, Kind::P2shMultisig),
        pay(240, Kind::P2wsh),
        mix(50, Purpose::Small(Kind::P2a)),
        pay(3, Kind::P2pk),
        pay(2, Kind::Multisig),
    ],
    data: &[span(70, 8, 24, 2), span(20, 20, 40, 2), span(10, 30, 80, 3)],
    inscription: &[span(50, 60, 130, 1), span(40, 200, 1_200, 2), span(10, 1_500, 12_000, 3)],
    ages: Ages {
        same_block: 284,
        young: 500,
        old: 150,
        young_ages: &[
            span(110, 1, 1, 1),
            span(150, 2, 6, 1),
            span(130, 7, 36, 1),
            span(110, 37, 144, 1),
        ],
    },
    stock_blocks: 40,
    fee_rate: span(1, 1_500, 20_000, 4),
    giant_every: 0,
    bsv: false,
};

/// 7,500 inputs and 8,600 outputs a block, in 5,000 transactions.
static DENSE: Table = Table {
    transactions: 5_000,
    inputs: &[span(50, 1, 1, 1), span(50, 2, 2, 1)],
    outputs: &[span(40, 1, 1, 1), span(48, 2, 2, 1), span(12, 3, 3, 1)],
    mix: &[pay(88, Kind::P2wpkh), pay(8, Kind::P2tr), pay(4, Kind::P2pkh)],
    data: &[span(1, 8, 40, 1)],
    inscription: &[span(1, 60, 130, 1)],
    ages: Ages {
        same_block: 100,
        young: 500,
        old: 250,
        young_ages: &[span(30, 1, 6, 1), span(30, 7, 36, 1), span(40, 37, 144, 1)],
    },
    stock_blocks: 60,
    fee_rate: span(1, 1_500, 6_000, 4),
    giant_every: 0,
    bsv: false,
};

/// 1,000 transactions a block, a third of them with 1 to 400 kB of data.
static BSV: Table = Table {
    transactions: 1_000,
    inputs: &[span(80, 1, 1, 1), span(15, 2, 3, 1), span(5, 4, 60, 3)],
    outputs: &[span(20, 1, 1, 1), span(55, 2, 2, 1), span(20, 3, 10, 2), span(5, 11, 120, 3)],
    mix: &[
        pay(840, Kind::P2pkh),
        mix(140, Purpose::Data),
        pay(10, Kind::P2pk),
        pay(10, Kind::Multisig),
    ],
    data: &[
        span(60, 1_000, 4_000, 2),
        span(30, 4_000, 20_000, 2),
        span(9, 20_000, 110_000, 2),
        span(1, 110_000, 400_000, 3),
    ],
    inscription: &[span(1, 60, 130, 1)],
    ages: Ages {
        same_block: 250,
        young: 500,
        old: 200,
        young_ages: &[span(40, 1, 6, 1), span(35, 7, 36, 1), span(25, 37, 144, 1)],
    },
    stock_blocks: 60,
    fee_rate: span(1, 50, 500, 2),
    giant_every: 16,
    bsv: true,
};

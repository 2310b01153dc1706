//! The work: rows of mainnet-like blocks, computed from their numbers.
//!
//! Every block has 2,400 transactions and 5,928 spends, 2.47 a transaction as mainnet has. Nothing
//! is stored: transaction number *n* has the link *n* and a txid that is a function of *n*; spend
//! number *n* has an outpoint that is a function of *n*.
//!
//! ```text
//!            block 0                block 1
//! tx      │ 0 1 2 …     2,399 │ 2,400 …             numbers, which are links
//! spend   │ 0 1 2 3 4 … 5,927 │ 5,928 …             numbers
//!           └┬┘ └─┬─┘
//!   spender  1    2   …                             position in the block; 0 is the coinbase
//! ```
//!
//! A number that no block has reached is a key that is absent.

use varve_archive::primitive::{KeyHasher as _, Keyed};

use varve_testdata::Random;

/// Transactions of a block.
pub(super) const TXS: u32 = 2_400;
/// Spends of a block.
pub(super) const SPENDS: u32 = 5_928;
/// Rows of a block.
pub(super) const ROWS: u64 = (TXS + SPENDS) as u64;

const TXID_LEN: usize = 32;
const OUTPOINT_LEN: usize = 36;
/// The secret of the keyed hash; all sides store the same hashes.
const SECRET: [u8; Keyed::LEN] = *b"a bench's secret";

/// One of the two tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// By txid.
    Tx,
    /// By outpoint.
    Spend,
}

impl Kind {
    pub(super) const ALL: [Self; 2] = [Self::Tx, Self::Spend];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Tx => "tx",
            Self::Spend => "spend",
        }
    }

    /// Rows of a block.
    pub(super) const fn a_block(self) -> u32 {
        match self {
            Self::Tx => TXS,
            Self::Spend => SPENDS,
        }
    }

    /// Where in its block the transaction of a row is, by the row's place among those of the block.
    fn position(self, place: u32) -> u32 {
        match self {
            Self::Tx => place,
            Self::Spend => {
                let spender = u64::from(place) * u64::from(TXS - 1) / u64::from(SPENDS);
                1 + u32::try_from(spender).expect("fewer than a block has transactions")
            }
        }
    }
}

/// One of each table.
#[derive(Debug)]
pub(super) struct Both<T> {
    pub(super) tx: T,
    pub(super) spend: T,
}

impl<T> Both<T> {
    pub(super) fn try_new<E>(mut make: impl FnMut(Kind) -> Result<T, E>) -> Result<Self, E> {
        Ok(Self { tx: make(Kind::Tx)?, spend: make(Kind::Spend)? })
    }

    pub(super) const fn of(&self, kind: Kind) -> &T {
        match kind {
            Kind::Tx => &self.tx,
            Kind::Spend => &self.spend,
        }
    }

    pub(super) const fn of_mut(&mut self, kind: Kind) -> &mut T {
        match kind {
            Kind::Tx => &mut self.tx,
            Kind::Spend => &mut self.spend,
        }
    }
}

/// The rows of one block in the order of its transactions: keyed hash, position in the block.
#[derive(Debug)]
pub(super) struct BlockRows {
    /// The number of the block.
    pub(super) number: u32,
    pub(super) rows: Both<Vec<(u64, u32)>>,
}

impl BlockRows {
    /// The link of the block's first transaction.
    pub(super) fn first(&self) -> u64 {
        first_link(self.number)
    }
}

/// The link of the first transaction of a block.
pub(super) fn first_link(block: u32) -> u64 {
    u64::from(block) * u64::from(TXS)
}

/// Computes rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rows(Keyed);

impl Rows {
    pub(super) const fn new() -> Self {
        Self(Keyed::new(SECRET))
    }

    /// All rows of a block.
    pub(super) fn block(&self, number: u32) -> BlockRows {
        let of = |kind: Kind| {
            let first = u64::from(number) * u64::from(kind.a_block());
            let row =
                |place: u32| (self.hash(kind, first + u64::from(place)), kind.position(place));
            (0..kind.a_block()).map(row).collect()
        };
        BlockRows { number, rows: Both { tx: of(Kind::Tx), spend: of(Kind::Spend) } }
    }

    /// The keyed hash of the key of row `number`.
    pub(super) fn hash(&self, kind: Kind, number: u64) -> u64 {
        match kind {
            Kind::Tx => {
                let mut txid = [0; TXID_LEN];
                Random::new(number).fill(&mut txid);
                self.0.hash(&txid)
            }
            Kind::Spend => {
                let mut outpoint = [0; OUTPOINT_LEN];
                Random::new(!number).fill(&mut outpoint);
                self.0.hash(&outpoint)
            }
        }
    }

    /// The link of row `number`.
    pub(super) fn link(kind: Kind, number: u64) -> u64 {
        let each = u64::from(kind.a_block());
        let place = u32::try_from(number % each).expect("a block has few rows");
        number / each * u64::from(TXS) + u64::from(kind.position(place))
    }
}

/// A lookup: the hash of its key, and the expected link, if any.
#[derive(Clone, Copy, Debug)]
pub(super) struct Probe {
    pub(super) hash: u64,
    pub(super) link: Option<u64>,
}

/// Random keys that `blocks` blocks have, or that none has.
pub(super) fn probes(kind: Kind, blocks: u32, count: usize, present: bool) -> Vec<Probe> {
    let rows = Rows::new();
    let mut random = Random::new(Random::new(u64::from(blocks)).bits() ^ u64::from(present));
    let all = u64::from(blocks) * u64::from(kind.a_block());
    let one = |_| {
        let number = random.bits() % all;
        if present {
            Probe { hash: rows.hash(kind, number), link: Some(Rows::link(kind, number)) }
        } else {
            Probe { hash: rows.hash(kind, all + number), link: None }
        }
    };
    (0..count).map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_has_what_its_numbers_say() {
        let rows = Rows::new();
        let block = rows.block(3);
        assert_eq!(block.first(), 7_200);
        for kind in Kind::ALL {
            let of = block.rows.of(kind);
            assert_eq!(of.len(), kind.a_block() as usize);
            for (number, (hash, position)) in (3 * u64::from(kind.a_block())..).zip(of) {
                assert_eq!(*hash, rows.hash(kind, number));
                assert_eq!(block.first() + u64::from(*position), Rows::link(kind, number));
                assert!(*position < TXS);
            }
        }
        let spenders: Vec<u32> = block.rows.spend.iter().map(|(_, position)| *position).collect();
        assert_eq!((spenders[0], spenders[SPENDS as usize - 1]), (1, TXS - 1));
        assert!(spenders.windows(2).all(|pair| pair[0] <= pair[1] && pair[1] <= pair[0] + 1));
    }

    #[test]
    fn probes_are_present_or_absent() {
        let rows = Rows::new();
        let hashes: Vec<u64> =
            (0..2).flat_map(|n| rows.block(n).rows.tx).map(|row| row.0).collect();
        for probe in probes(Kind::Tx, 2, 100, true) {
            let link = usize::try_from(probe.link.unwrap()).unwrap();
            assert_eq!(hashes[link], probe.hash);
        }
        for probe in probes(Kind::Tx, 2, 100, false) {
            assert!(!hashes.contains(&probe.hash));
        }
    }
}

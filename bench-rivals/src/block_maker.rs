//! Dense blocks: 7,500 coins spent and 7,500 made in each.
//!
//! Where the inputs come from, as on mainnet:
//!
//! | share | what |
//! |---|---|
//! | a quarter | outputs made earlier in the same block |
//! | a half | coins of 1 to 144 blocks, the young ones more often |
//! | a quarter | older coins: of the stock, or of blocks that are older than 144, by their number |
//!
//! A transaction has one or two inputs and one or two outputs, with witnesses of the usual size.
//! The blocks are linked by their hashes and parse; nothing else about them is valid, because the
//! set does not check it: no work, no merkle root, no signatures, arbitrary amounts.

use std::collections::VecDeque;

use varve_types::{BlockHash, Outpoint, Txid, compact_size, sha256d};

use crate::stock::{BASE, BASE_HEIGHT, ScriptKind, Stock, amount};
use varve_testdata::Random;

/// Inputs a block, without the coinbase's; outputs a block.
pub(crate) const COINS: usize = 7_500;
/// Blocks that count as young.
const YOUNG: usize = 144;
/// A signature, a key, and their lengths.
const WITNESS_LEN: usize = 1 + 1 + 71 + 1 + 33;

/// Makes one block after another.
#[derive(Debug)]
pub(crate) struct BlockMaker {
    random: Random,
    stock: Stock,
    /// Unspent coins of the young blocks, the youngest first.
    young: VecDeque<Vec<Outpoint>>,
    /// Unspent coins of older blocks.
    old: Vec<Outpoint>,
    previous: BlockHash,
    height: u32,
}

impl BlockMaker {
    /// Starts on top of `stock`.
    pub(crate) fn new(stock: Stock, seed: u64) -> Self {
        let (random, height) = (Random::new(seed), BASE_HEIGHT.to_u32());
        let (young, old) = (VecDeque::new(), Vec::new());
        Self { random, stock, young, old, previous: BASE, height }
    }

    /// The unspent rest of the stock.
    pub(crate) fn into_stock(self) -> Stock {
        self.stock
    }

    /// The bytes of the next block.
    pub(crate) fn next_block(&mut self) -> Vec<u8> {
        self.height += 1;
        let (mut body, mut made, mut count) = (Vec::new(), Vec::new(), 1);
        let mut inputs_left = COINS;
        let mut outputs_left = COINS - 1;
        self.coinbase(&mut body);
        while inputs_left > 0 {
            let mut inputs = inputs_left.min(1 + self.random.index(2));
            let mut outputs = outputs_left.min(1 + self.random.index(2));
            // The last transaction takes what is left of both.
            if inputs == inputs_left || outputs == outputs_left {
                (inputs, outputs) = (inputs_left, outputs_left);
            }
            let spent: Vec<Outpoint> = (0..inputs).map(|_| self.spend(&mut made)).collect();
            self.transaction(&spent, outputs, &mut body, &mut made);
            inputs_left -= inputs;
            outputs_left -= outputs;
            count += 1;
        }
        self.age(made);
        self.with_header(count, &body)
    }

    /// Draws where an input comes from, and takes a coin there.
    fn spend(&mut self, made: &mut Vec<Outpoint>) -> Outpoint {
        let draw = self.random.index(100);
        if draw < 25
            && let Some(coin) = take(&mut self.random, made)
        {
            return coin;
        }
        if draw < 75
            && let Some(coin) = self.spend_young()
        {
            return coin;
        }
        let stock = usize::try_from(self.stock.left()).unwrap_or(usize::MAX);
        if self.random.index(stock + self.old.len()) < stock
            && let Some(coin) = self.stock.take()
        {
            return coin;
        }
        take(&mut self.random, &mut self.old).expect("the stock is larger than what is spent")
    }

    /// 30% are of the last 6 blocks, 30% of the 30 before, the others older; while there are fewer
    /// blocks, of the oldest.
    fn spend_young(&mut self) -> Option<Outpoint> {
        let oldest = self.young.len().checked_sub(1)?;
        let age = match self.random.index(100) {
            0..30 => self.random.index(6),
            30..60 => 6 + self.random.index(30),
            _ => 36 + self.random.index(YOUNG - 36),
        };
        take(&mut self.random, self.young.get_mut(age.min(oldest))?)
    }

    fn age(&mut self, made: Vec<Outpoint>) {
        self.young.push_front(made);
        if self.young.len() > YOUNG {
            self.old.extend(self.young.pop_back().unwrap_or_default());
        }
    }

    /// The coinbase, whose coin is never spent: it would be immature.
    fn coinbase(&mut self, body: &mut Vec<u8>) {
        let mut legacy = 1_u32.to_le_bytes().to_vec();
        legacy.push(1);
        legacy.extend_from_slice(&[0; 32]);
        legacy.extend_from_slice(&u32::MAX.to_le_bytes());
        legacy.push(4);
        legacy.extend_from_slice(&self.height.to_le_bytes());
        legacy.extend_from_slice(&u32::MAX.to_le_bytes());
        legacy.push(1);
        self.output(&mut legacy);
        legacy.extend_from_slice(&[0; 4]);
        body.extend_from_slice(&legacy);
    }

    fn transaction(
        &mut self,
        spent: &[Outpoint],
        outputs: usize,
        body: &mut Vec<u8>,
        made: &mut Vec<Outpoint>,
    ) {
        let mut middle = Vec::with_capacity(spent.len() * 41 + outputs * 45 + 10);
        compact_size::write(spent.len() as u64, &mut middle);
        for outpoint in spent {
            middle.extend_from_slice(&outpoint.to_bytes());
            middle.extend_from_slice(&[0, 0xfd, 0xff, 0xff, 0xff]);
        }
        compact_size::write(outputs as u64, &mut middle);
        for _ in 0..outputs {
            self.output(&mut middle);
        }
        let version = 2_u32.to_le_bytes();
        let txid = Txid::from_bytes(sha256d(&[&version, &middle[..], &[0; 4]].concat()));
        body.extend_from_slice(&version);
        body.extend_from_slice(&[0, 1]);
        body.extend_from_slice(&middle);
        for _ in spent {
            self.witness(body);
        }
        body.extend_from_slice(&[0; 4]);
        made.extend((0..).take(outputs).map(|vout| Outpoint::new(txid, vout)));
    }

    /// 88% P2WPKH, 8% P2TR, 4% P2PKH.
    fn output(&mut self, out: &mut Vec<u8>) {
        let kind = match self.random.index(100) {
            0..88 => ScriptKind::P2wpkh,
            88..96 => ScriptKind::P2tr,
            _ => ScriptKind::P2pkh,
        };
        out.extend_from_slice(&amount(&mut self.random).to_sat().to_le_bytes());
        let mut script = Vec::with_capacity(34);
        kind.write(&mut self.random, &mut script);
        compact_size::write(script.len() as u64, out);
        out.extend_from_slice(&script);
    }

    fn witness(&mut self, out: &mut Vec<u8>) {
        let mut witness = [0; WITNESS_LEN];
        self.random.fill(&mut witness);
        let [count, signature, middle @ ..] = &mut witness;
        (*count, *signature) = (2, 71);
        if let Some(key) = middle.get_mut(71) {
            *key = 33;
        }
        out.extend_from_slice(&witness);
    }

    fn with_header(&mut self, transactions: u64, body: &[u8]) -> Vec<u8> {
        let mut block = 0x2000_0000_u32.to_le_bytes().to_vec();
        block.extend_from_slice(self.previous.as_bytes());
        block.extend_from_slice(&[0; 32]);
        block.extend_from_slice(&self.height.to_le_bytes());
        block.extend_from_slice(&0x207f_ffff_u32.to_le_bytes());
        block.extend_from_slice(&[0; 4]);
        self.previous = BlockHash::from_bytes(sha256d(&block));
        compact_size::write(transactions, &mut block);
        block.extend_from_slice(body);
        block
    }
}

fn take(random: &mut Random, coins: &mut Vec<Outpoint>) -> Option<Outpoint> {
    if coins.is_empty() {
        return None;
    }
    let place = random.index(coins.len());
    Some(coins.swap_remove(place))
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use varve_types::Block;

    use super::*;
    use crate::stock::NETWORK;

    #[test]
    fn blocks_chain_and_spend_as_they_should() {
        let mut maker = BlockMaker::new(Stock::new(600_000, 1), 2);
        let mut made: HashMap<Outpoint, u32> = HashMap::new();
        let mut previous = BASE;
        let (mut same, mut young, mut old) = (0, 0, 0);
        for height in 0..200_u32 {
            let bytes = maker.next_block();
            let block = Block::parse(&bytes, NETWORK.format()).unwrap();
            assert_eq!(block.header().previous(), previous);
            previous = block.hash();
            let (mut inputs, mut outputs) = (0, 0);
            for tx in block.txs() {
                for input in tx.inputs().filter(|_| !tx.is_coinbase()) {
                    inputs += 1;
                    match made.remove(&input.outpoint) {
                        _ if height < 150 => (),
                        Some(from) if from == height => same += 1,
                        Some(from) if height - from <= 144 => young += 1,
                        _ => old += 1,
                    }
                }
                for (vout, _) in (0..).zip(tx.outputs()) {
                    outputs += 1;
                    made.insert(Outpoint::new(tx.txid(), vout), height);
                }
            }
            assert_eq!((inputs, outputs), (COINS, COINS));
        }
        let all = (same + young + old) as f64;
        let shares = [same, young, old].map(|count: usize| (count as f64 / all * 100.0).round());
        assert_eq!(shares, [25.0, 50.0, 25.0]);
    }

    #[test]
    fn the_same_seed_gives_the_same_blocks() {
        let block = |seed| BlockMaker::new(Stock::new(50_000, 1), seed).next_block();
        assert_eq!(block(5), block(5));
        assert_ne!(block(5), block(6));
    }
}

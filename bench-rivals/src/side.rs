//! What every side of the race can do, and the form in which each gets a block.
//!
//! Reading and parsing is not part of the race. So everything that can be computed from a block
//! without the set is prepared while the clock is stopped:
//!
//! - [`Net`], for stores of keys and values: what the block takes from the set and what it leaves
//!   there, as sorted keys and packed coins. Outputs that the block spends itself are already
//!   removed.
//! - [`Flat`], for the map: all outputs, all inputs.
//! - Ours gets the parsed block with its txids, and does everything else while the clock runs.

use std::collections::HashMap;
use std::io::Read;

use anyhow::{Result, ensure};
use varve_consensus::BlockAt;
use varve_types::{Amount, Coin, Height, Outpoint, Txid, compress, varint};
use varve_utxo::parts::{PackedCoin, pack};

use crate::digest::{Found, SetDigest};
use crate::key::Key;

/// One side of the race.
pub(crate) trait Side {
    /// A prepared block.
    type Ready<'b>;

    /// Fills the set from Core's snapshot.
    fn load(&mut self, snapshot: &mut dyn Read) -> Result<()>;

    /// Prepares a block. Not timed.
    fn prepare<'b>(&self, block: BlockAt<'b>) -> Self::Ready<'b>;

    /// Connects blocks: looks up and removes the inputs, adds the outputs. Timed.
    fn connect(&mut self, blocks: &[Self::Ready<'_>]) -> Result<Found>;

    /// Makes everything durable. Timed.
    fn sync(&mut self) -> Result<()>;

    /// Reads the whole set.
    fn digest(&mut self) -> Result<SetDigest>;
}

/// What a block changes, for stores of keys and values.
#[derive(Debug, Default)]
pub(crate) struct Net {
    /// What it takes from the set, sorted.
    pub(crate) spent: Vec<Key>,
    /// What it leaves there, sorted: keys and packed coins.
    pub(crate) made: Vec<(Key, Vec<u8>)>,
    /// What it spends of its own outputs.
    pub(crate) inner: Found,
}

impl Net {
    pub(crate) fn of(block: &BlockAt<'_>) -> Self {
        let mut net = Self::default();
        let mut made: HashMap<Outpoint, Coin<'_>> = HashMap::new();
        for (txid, tx) in block.txs() {
            let coinbase = tx.is_coinbase();
            for input in tx.inputs().filter(|_| !coinbase) {
                match made.remove(&input.outpoint) {
                    Some(coin) => net.inner.add(coin.value.to_sat(), coin.script),
                    None => net.spent.push(Key::of(&input.outpoint)),
                }
            }
            for (vout, output) in (0..).zip(tx.outputs()) {
                let (height, value) = (block.height(), output.value);
                let coin = Coin { height, coinbase, value, script: output.script };
                made.insert(Outpoint::new(txid, vout), coin);
            }
        }
        net.spent.sort_unstable();
        net.made = made.iter().map(|(outpoint, coin)| (Key::of(outpoint), packed(coin))).collect();
        net.made.sort_unstable();
        net
    }
}

/// What a block spends and makes, for a map.
#[derive(Debug)]
pub(crate) struct Flat<'b> {
    pub(crate) inputs: Vec<Outpoint>,
    pub(crate) outputs: Vec<(Outpoint, Coin<'b>)>,
}

impl<'b> Flat<'b> {
    pub(crate) fn of(block: &BlockAt<'b>) -> Self {
        let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
        for (txid, tx) in block.txs() {
            let coinbase = tx.is_coinbase();
            inputs.extend(tx.inputs().filter(|_| !coinbase).map(|input| input.outpoint));
            outputs.extend((0..).zip(tx.outputs()).map(|(vout, output)| {
                let (height, value) = (block.height(), output.value);
                let coin = Coin { height, coinbase, value, script: output.script };
                (Outpoint::new(txid, vout), coin)
            }));
        }
        Self { inputs, outputs }
    }
}

/// The bytes of a coin as Core stores them.
pub(crate) fn packed(coin: &Coin<'_>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(40);
    pack(coin, &mut bytes);
    bytes
}

/// Reads what [`packed`] made. The script goes to `script`.
pub(crate) fn unpacked<'s>(bytes: &[u8], script: &'s mut Vec<u8>) -> Result<Coin<'s>> {
    script.clear();
    let head = PackedCoin::new(bytes).unpack(script)?;
    Ok(head.with_script(script))
}

/// Calls `each` with every coin of a snapshot, in key order.
pub(crate) fn each_coin(
    snapshot: &mut dyn Read,
    mut each: impl FnMut(&Outpoint, &Coin<'_>) -> Result<()>,
) -> Result<()> {
    let mut input = std::io::BufReader::with_capacity(1 << 20, snapshot);
    let mut header = [0; 51];
    input.read_exact(&mut header)?;
    let coins = header.last_chunk().copied().map_or(0, u64::from_le_bytes);
    let mut script = Vec::new();
    let mut done = 0;
    while done < coins {
        let mut txid = [0; 32];
        input.read_exact(&mut txid)?;
        // The stock has at most three coins a transaction, so both numbers are one byte.
        for _ in 0..byte(&mut input)? {
            let outpoint = Outpoint::new(Txid::from_bytes(txid), u32::from(byte(&mut input)?));
            let code = read_varint(&mut input)?;
            let amount = read_varint(&mut input)?;
            read_script(&mut input, &mut script)?;
            let height = Height::new(u32::try_from(code >> 1)?);
            let value = compress::decompress_amount(amount).unwrap_or(Amount::from_sat(0));
            each(&outpoint, &Coin { height, coinbase: code & 1 == 1, value, script: &script })?;
            done += 1;
        }
    }
    Ok(())
}

fn byte(input: &mut impl Read) -> Result<u8> {
    let mut byte = [0];
    input.read_exact(&mut byte)?;
    let [byte] = byte;
    Ok(byte)
}

fn read_varint(input: &mut impl Read) -> Result<u64> {
    let mut bytes = Vec::with_capacity(10);
    loop {
        bytes.push(byte(input)?);
        ensure!(bytes.len() <= 10, "a number of the snapshot is too long");
        if bytes.last().is_some_and(|byte| byte & 0x80 == 0) {
            let number = varint::read(&mut varve_types::Reader::new(&bytes), "number")?;
            return Ok(number);
        }
    }
}

/// The kinds that the stock has: compressed P2PKH and P2SH, all others as they are.
fn read_script(input: &mut impl Read, script: &mut Vec<u8>) -> Result<()> {
    let size = read_varint(input)?;
    let len = match size {
        0 | 1 => 20,
        6..=10_006 => usize::try_from(size - 6)?,
        _ => anyhow::bail!("the stock has no script of the kind {size}"),
    };
    let mut body = vec![0; len];
    input.read_exact(&mut body)?;
    let (before, after): (&[u8], &[u8]) = match size {
        0 => (&[0x76, 0xa9, 20], &[0x88, 0xac]),
        1 => (&[0xa9, 20], &[0x87]),
        _ => (&[], &[]),
    };
    script.clear();
    script.extend_from_slice(before);
    script.extend_from_slice(&body);
    script.extend_from_slice(after);
    Ok(())
}

#[cfg(test)]
mod tests {
    use varve_types::Block;

    use super::*;
    use crate::block_maker::{BlockMaker, COINS};
    use crate::stock::{NETWORK, Stock};

    #[test]
    fn the_snapshot_is_read_in_order() {
        let mut bytes = Vec::new();
        Stock::new(1_000, 4).write(&mut bytes).unwrap();
        let mut last = None;
        let mut count = 0_u64;
        each_coin(&mut bytes.as_slice(), |outpoint, coin| {
            assert!(last < Some(Key::of(outpoint)));
            assert_eq!(unpacked(&packed(coin), &mut Vec::new()).unwrap(), *coin);
            last = Some(Key::of(outpoint));
            count += 1;
            Ok(())
        })
        .unwrap();
        assert_eq!(&bytes[43..51], &count.to_le_bytes());
    }

    #[test]
    fn both_forms_of_a_block_say_the_same() {
        let bytes = BlockMaker::new(Stock::new(50_000, 1), 2).next_block();
        let block = Block::parse(&bytes, NETWORK.format()).unwrap();
        let block = BlockAt::new(Height::new(5), &block);
        let (net, flat) = (Net::of(&block), Flat::of(&block));
        assert_eq!((flat.inputs.len(), flat.outputs.len()), (COINS, COINS));
        let inner = usize::try_from(net.inner.coins).unwrap();
        assert!(inner > 0);
        assert_eq!((net.spent.len(), net.made.len()), (COINS - inner, COINS - inner));
    }
}

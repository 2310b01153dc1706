//! Single full blocks: under all rules where the outputs that they spend are available, else under
//! the structural rules.

use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::path::Path;

use varve_consensus::{
    Ancestor, Ancestors, BlockAt, CoreVerifier, MemorySet, OwnedCoin, Params, Spending,
    block_base_size, block_weight, check_block, check_block_context, check_scripts, check_spends,
    check_work,
};
use varve_types::{Amount, Block, BlockHash, Height, Network, Outpoint, Reader, Txid};
use varve_types::{compress, varint};

use crate::load;
use crate::replay::invalid;

/// Assumed headers below a block whose real ones we lack: ten minutes apart.
pub(crate) struct Assumed {
    height: Height,
    time: u32,
}

impl Assumed {
    pub(crate) fn below(block: &BlockAt<'_>) -> Self {
        Self { height: block.height(), time: block.block().header().time() }
    }
}

impl Ancestors for Assumed {
    fn ancestor(&self, height: Height) -> Option<Ancestor> {
        let below = self.height.since(height).filter(|below| *below > 0)?;
        let time = self.time.saturating_sub(600 * below);
        Some(Ancestor { hash: BlockHash::ZERO, time, bits: 0 })
    }
}

/// The set that a block needs below it, from a coin for every one of its inputs.
fn set_below(block: &Block<'_>, coins: Vec<OwnedCoin>) -> MemorySet {
    let own: HashSet<Txid> = block.txids().into_iter().collect();
    let inputs: Vec<_> = block.txs().iter().skip(1).flat_map(|tx| tx.inputs()).collect();
    assert_eq!(inputs.len(), coins.len(), "a coin for every input");
    let mut set = MemorySet::new(Network::Mainnet);
    for (input, coin) in inputs.iter().zip(coins) {
        if !own.contains(&input.outpoint.txid) {
            set.insert(input.outpoint, coin);
        }
    }
    set
}

fn all_rules(network: Network, height: u32, bytes: &[u8], set: &MemorySet) -> Spending {
    let params = Params::new(network);
    let block = load::parse(bytes);
    let block = BlockAt::new(Height::new(height), &block);
    check_structure(&params, &block);
    let spending = check_spends(&params, &block, &Assumed::below(&block), set);
    let spending = spending.map_err(invalid).unwrap_or_else(|error| panic!("{height}: {error}"));
    let threads = NonZeroUsize::new(2).unwrap();
    let scripts = check_scripts(&params, &block, set, &CoreVerifier, threads).map_err(invalid);
    assert_eq!(scripts, Ok(()), "{height}");
    spending
}

fn check_structure(params: &Params, block: &BlockAt<'_>) {
    let height = block.height();
    assert_eq!(check_work(params, block.block().header()), Ok(()), "{height}");
    assert_eq!(check_block(params, block), Ok(()), "{height}");
    assert_eq!(check_block_context(params, block, &Assumed::below(block)), Ok(()), "{height}");
}

/// What the coinbase takes above the subsidy. Miners seldom leave anything.
fn claimed_fees(network: Network, height: u32, bytes: &[u8]) -> Amount {
    let block = load::parse(bytes);
    let taken = block.txs()[0].outputs().map(|output| output.value.to_sat()).sum();
    Amount::from_sat(taken).checked_sub(network.subsidy(Height::new(height))).unwrap()
}

/// The undo files of bcoin hold an output for every input, also for those of the same block, and
/// no heights: the coins are taken to be old.
pub(crate) fn bcoin(name: &str) -> Option<(Vec<u8>, MemorySet)> {
    let bytes = load::bytes(&format!("blocks/bcoin/{name}.raw"))?;
    let undo = load::bytes(&format!("blocks/bcoin/{name}-undo.raw"))?;
    let coins = load::outputs(&undo).into_iter().map(|output| OwnedCoin {
        height: Height::new(1),
        coinbase: false,
        value: output.value,
        script: output.script.to_vec(),
    });
    let set = set_below(&load::parse(&bytes), coins.collect());
    Some((bytes, set))
}

#[test]
fn bcoin_blocks_with_undo() {
    let blocks = [
        (Network::Mainnet, 300_025),
        (Network::Testnet3, 928_816),
        (Network::Testnet3, 928_828),
        (Network::Testnet3, 928_831),
        (Network::Testnet3, 928_848),
        (Network::Testnet3, 928_849),
        (Network::Testnet3, 928_927),
        (Network::Testnet3, 1_087_400),
    ];
    for (network, height) in blocks {
        let Some((bytes, set)) = bcoin(&format!("block{height}")) else { return };
        let spending = all_rules(network, height, &bytes, &set);
        assert_eq!(spending.fees, claimed_fees(network, height, &bytes), "{height}");
    }
}

/// The store of btcd: `txid 32 │ vout u32le │ length u32le │ VARINT(code) │ compressed output`.
/// It holds the outputs of the block itself too.
#[test]
fn btcd_block_277647() {
    let Some(file) = load::bytes("blocks/277647.dat.bz2") else { return };
    let Some(store) = load::bytes("blocks/277647.utxostore.bz2") else { return };
    let bytes = &load::blk_file(&file)[0];
    let own = load::parse(bytes).txids();
    let mut set = MemorySet::new(Network::Mainnet);
    let mut reader = Reader::new(&store);
    while reader.end().is_err() {
        let outpoint = Outpoint::from_bytes(reader.array("an outpoint").unwrap());
        let length = reader.u32("a length").unwrap();
        let mut entry = Reader::new(reader.take(u64::from(length), "an entry").unwrap());
        let code = varint::read(&mut entry, "a code").unwrap();
        let mut script = Vec::new();
        let value = compress::read_output(&mut entry, &mut script).unwrap();
        let height = Height::new(u32::try_from(code >> 1).unwrap());
        if !own.contains(&outpoint.txid) {
            set.insert(outpoint, OwnedCoin { height, coinbase: code & 1 == 1, value, script });
        }
    }
    let spending = all_rules(Network::Mainnet, 277_647, bytes, &set);
    assert_eq!(spending.fees, claimed_fees(Network::Mainnet, 277_647, bytes));
}

/// Floresta's files list the output of every input, in block order.
#[test]
fn floresta_blocks_with_spent_outputs() {
    for height in [367_891, 866_342] {
        let Some(bytes) = load::bytes(&format!("blocks/floresta_{height}_raw.zst")) else { return };
        let file = format!("blocks/floresta_{height}_spent_utxos.zst");
        let Some(spent) = load::bytes(&file) else { return };
        let spent: serde_json::Value = serde_json::from_slice(&spent).unwrap();
        let coins = spent.as_array().unwrap().iter().map(|utxo| OwnedCoin {
            height: Height::new(u32::try_from(utxo["creation_height"].as_u64().unwrap()).unwrap()),
            coinbase: utxo["is_coinbase"].as_bool().unwrap(),
            value: Amount::from_sat(utxo["txout"]["value"].as_u64().unwrap()),
            script: load::hex(utxo["txout"]["script_pubkey"].as_str().unwrap()),
        });
        let set = set_below(&load::parse(&bytes), coins.collect());
        let spending = all_rules(Network::Mainnet, height, &bytes, &set);
        assert_eq!(spending.fees, claimed_fees(Network::Mainnet, height, &bytes), "{height}");
    }
}

#[test]
fn stale_blocks_of_recent_years() {
    let Some(folder) = varve_testdata::data("stale") else { return };
    let params = Params::new(Network::Mainnet);
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let (height, hash) = height_and_hash(&path);
        let bytes = load::unpack(&path);
        let block = load::parse(&bytes);
        assert_eq!(block.hash(), hash);
        check_structure(&params, &BlockAt::new(height, &block));
        assert!(block_weight(&block) > 2_000_000, "these are large blocks");
        assert_weight(&bytes);
        count += 1;
    }
    assert_eq!(count, 20);
}

fn height_and_hash(path: &Path) -> (Height, BlockHash) {
    let name = path.file_stem().unwrap().to_str().unwrap();
    let (height, hash) = name.split_once('-').unwrap();
    (Height::new(height.parse().unwrap()), hash.parse().unwrap())
}

/// Against the `bitcoin` crate.
fn assert_weight(bytes: &[u8]) {
    let theirs: bitcoin::Block = bitcoin::consensus::deserialize(bytes).unwrap();
    let ours = load::parse(bytes);
    assert_eq!(block_weight(&ours), theirs.weight().to_wu());
    let base = (theirs.weight().to_wu() - bytes.len() as u64) / 3;
    assert_eq!(block_base_size(&ours), base);
}

#[test]
fn structure_of_other_full_blocks() {
    let blocks = [
        ("mainnet_200000_btclib", Network::Mainnet, 200_000),
        ("mainnet_400000_conduit", Network::Mainnet, 400_000),
        ("mainnet_413567_core", Network::Mainnet, 413_567),
        ("mainnet_481824_btclib", Network::Mainnet, 481_824),
        ("mainnet_702861_rust-bitcoin", Network::Mainnet, 702_861),
        ("bcoin/block1", Network::Mainnet, 1),
        ("bcoin/block426884", Network::Mainnet, 426_884),
        ("bcoin/block482683", Network::Mainnet, 482_683),
        ("bcoin/block898352", Network::Testnet3, 898_352),
    ];
    for (name, network, height) in blocks {
        let Some(bytes) = load::bytes(&format!("blocks/{name}.raw")) else { return };
        let block = load::parse(&bytes);
        check_structure(&Params::new(network), &BlockAt::new(Height::new(height), &block));
        assert_weight(&bytes);
    }
}

//! Each header rule broken once.

use varve_types::Network;

use super::*;
use crate::ancestors::Ancestor;
use crate::contract::draft::{BlockDraft, TxDraft};

/// Twelve headers of regtest, ten minutes apart.
fn chain() -> Vec<Ancestor> {
    let genesis = Network::Regtest.genesis_block();
    let genesis = Ancestor::from(Header::new(genesis.first_chunk().unwrap()));
    let above = (1..12_u32).map(|at| Ancestor {
        hash: BlockHash::from_bytes([u8::try_from(at).unwrap(); 32]),
        time: genesis.time + 600 * at,
        bits: genesis.bits,
    });
    [genesis].into_iter().chain(above).collect()
}

fn draft(chain: &[Ancestor]) -> BlockDraft {
    let last = chain.last().unwrap();
    let mut draft = BlockDraft::new(vec![TxDraft::coinbase(Height::new(12), 0)]);
    draft.previous = last.hash;
    draft.time = last.time + 600;
    draft
}

fn check(params: &Params, chain: &[Ancestor], draft: &BlockDraft) -> Result<(), HeaderError> {
    let bytes = draft.bytes();
    let header = Header::new(bytes.first_chunk().unwrap());
    let height = Height::new(u32::try_from(chain.len()).unwrap());
    check_header(params, header, height, chain, chain.last().unwrap().time)
}

fn reason(change: impl FnOnce(&mut BlockDraft)) -> Option<String> {
    let (chain, params) = (chain(), Params::new(Network::Regtest));
    let mut draft = draft(&chain);
    change(&mut draft);
    if draft.bits == 0x207f_ffff {
        draft.mine();
    }
    check(&params, &chain, &draft).err().map(|error| error.reject_reason().unwrap().into_owned())
}

#[test]
fn each_rule_has_its_reason() {
    let expect = |reason: &str| Some(reason.to_owned());
    let now = chain().last().unwrap().time;
    let median = chain()[6].time;
    assert_eq!(reason(|_| {}), None);
    assert_eq!(reason(|draft| draft.previous = BlockHash::ZERO), expect("prev-blk-not-found"));
    assert_eq!(reason(|draft| draft.bits = 0x1d00_ffff), expect("high-hash"));
    assert_eq!(reason(|draft| draft.bits = 0x2100_ffff), expect("high-hash"), "above the limit");
    assert_eq!(reason(|draft| draft.bits = 0), expect("high-hash"));
    assert_eq!(reason(|draft| draft.time = median), expect("time-too-old"));
    assert_eq!(reason(|draft| draft.time = median + 1), None);
    assert_eq!(reason(|draft| draft.time = now + 7200), None);
    assert_eq!(reason(|draft| draft.time = now + 7201), expect("time-too-new"));
    assert_eq!(reason(|draft| draft.version = 3), expect("bad-version(0x00000003)"));
    assert_eq!(reason(|draft| draft.version = -1), expect("bad-version(0xffffffff)"));
}

#[test]
fn wrong_bits() {
    // 207ffffe is easy enough to mine and not what the chain requires.
    let (chain, params) = (chain(), Params::new(Network::Regtest));
    let mut draft = draft(&chain);
    draft.bits = 0x207f_fffe;
    draft.mine();
    let error = check(&params, &chain, &draft).unwrap_err();
    assert_eq!(error, HeaderError::WrongBits { bits: 0x207f_fffe, expected: 0x207f_ffff });
    assert_eq!(error.reject_reason().unwrap(), "bad-diffbits");
}

#[test]
fn versions_retire_one_by_one() {
    let params = Params::new(Network::Mainnet);
    let retired = |version, height| check_version(&params, version, Height::new(height)).is_err();
    for (version, height) in [(1, 227_931), (2, 363_725), (3, 388_381)] {
        assert!(!retired(version, height - 1), "{version}");
        assert!(retired(version, height), "{version}");
        assert!(!retired(version + 1, height), "{version}");
    }
}

#[test]
fn time_warps_of_testnet4() {
    let mut chain: Vec<_> = (0..2016_u32)
        .map(|at| Ancestor { hash: BlockHash::ZERO, time: 1_000_000 + 600 * at, bits: 0 })
        .collect();
    chain[2015].time += 50_000;
    let parent = chain[2015].time;
    let check = |network, time| {
        let params = Params::new(network);
        check_time(&params, time, Height::new(2015), &chain, parent)
    };
    let warp = HeaderError::TimeWarp { time: parent - 601, parent };
    assert_eq!(warp.reject_reason().unwrap(), "time-timewarp-attack");
    assert_eq!(check(Network::Testnet4, parent - 601), Err(warp));
    assert_eq!(check(Network::Testnet4, parent - 600), Ok(()));
    assert_eq!(check(Network::Testnet3, parent - 601), Ok(()));
    // In the middle of a period the rule does not apply.
    let params = Params::new(Network::Testnet4);
    assert_eq!(check_time(&params, parent - 601, Height::new(2014), &chain, parent), Ok(()));
}

#[test]
fn a_genesis_block_is_that_of_its_network() {
    for network in Network::ALL {
        let block = Network::Regtest.genesis_block();
        let header = Header::new(block.first_chunk().unwrap());
        let none: [Ancestor; 0] = [];
        let result = check_header(&Params::new(network), header, Height::GENESIS, &none[..], 0);
        let same = matches!(network, Network::Regtest | Network::BsvRegtest);
        assert_eq!(result.is_ok(), same, "{network}");
    }
}

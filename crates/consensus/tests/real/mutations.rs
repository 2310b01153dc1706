//! Valid blocks, changed so that one rule is broken, and the reason that is given.
//!
//! The chain is made here: 110 blocks of regtest whose coinbases anyone can spend. A block above
//! them passes all rules; every case changes it in one way.

use varve_consensus::contract::draft::{BlockDraft, OutputDraft, TxDraft};
use varve_consensus::{
    BlockAt, BlockError, CoreVerifier, OwnedCoin, Params, PrevoutError, SpendError,
    check_signet_solution, check_work,
};
use varve_types::script::opcode::{
    OP_0, OP_1, OP_CHECKMULTISIG, OP_CHECKSIG, OP_EQUAL, OP_HASH160,
};
use varve_types::{Amount, Height, Network, Outpoint};

use crate::load;
use crate::replay::{NOW, Refusal, Replay};

const SUBSIDY: u64 = 50 * 100_000_000;
/// A height that no chain reaches.
const NEVER: Height = Height::new(u32::MAX);

struct Chain {
    replay: Replay,
    /// The coinbases, by height.
    coinbases: Vec<TxDraft>,
}

impl Chain {
    fn new() -> Self {
        let mut replay = Replay::new(Params::new(Network::Regtest));
        replay.connect(&Network::Regtest.genesis_block()).unwrap();
        let mut chain = Self { replay, coinbases: vec![TxDraft::coinbase(Height::GENESIS, 0)] };
        for _ in 1..=110 {
            let draft = chain.draft(Vec::new());
            chain.coinbases.push(draft.txs[0].clone());
            chain.replay.connect(&draft.bytes()).unwrap();
        }
        chain
    }

    /// A mined block of these transactions above the last.
    fn draft(&self, txs: Vec<TxDraft>) -> BlockDraft {
        let last = self.replay.headers.last().unwrap();
        let coinbase = TxDraft::coinbase(self.replay.next(), SUBSIDY);
        let mut draft = BlockDraft::new([vec![coinbase], txs].concat());
        (draft.previous, draft.time) = (last.hash, last.time + 600);
        draft.mine();
        draft
    }

    /// The coinbase output of this height: those up to 11 are old enough to be spent.
    fn coin(&self, height: usize) -> Outpoint {
        Outpoint::new(self.coinbases[height].txid(), 0)
    }

    fn spend(&self, height: usize) -> TxDraft {
        TxDraft::spending(&[self.coin(height)], 1)
    }

    /// A block with three transactions, which passes.
    fn valid(&self) -> BlockDraft {
        let first = self.spend(1);
        let second = TxDraft::spending(&[Outpoint::new(first.txid(), 0)], 1);
        self.draft(vec![first, second])
    }

    /// The verdict on a draft after it was changed and mined again.
    fn refusal(&self, mut draft: BlockDraft, change: impl FnOnce(&mut BlockDraft)) -> Refusal {
        assert!(self.replay.check(&draft.bytes()).is_ok(), "valid before the change");
        change(&mut draft);
        draft.mine();
        self.replay.check(&draft.bytes()).expect_err("invalid after the change")
    }

    fn reason(&self, change: impl FnOnce(&mut BlockDraft)) -> String {
        self.refusal(self.valid(), change).reason()
    }
}

/// Finds a nonce for a block in bytes.
fn remine(bytes: &mut [u8], params: &Params) {
    while varve_consensus::check_work(params, load::header(bytes)).is_err() {
        let nonce = load::header(bytes).nonce() + 1;
        bytes[76..80].copy_from_slice(&nonce.to_le_bytes());
    }
}

#[test]
fn headers() {
    let chain = Chain::new();
    let last = chain.replay.headers.last().unwrap();
    let median = last.time - 5 * 600;
    assert_eq!(chain.reason(|draft| draft.version = 1), "bad-version(0x00000001)");
    assert_eq!(chain.reason(|draft| draft.time = median), "time-too-old");
    assert_eq!(chain.reason(|draft| draft.time = NOW + 7201), "time-too-new");
    assert_eq!(chain.reason(|draft| draft.bits = 0x207f_fffd), "bad-diffbits");
    let mut draft = chain.valid();
    let params = Params::new(Network::Regtest);
    while check_work(&params, load::header(&draft.bytes())).is_ok() {
        draft.nonce += 1;
    }
    assert_eq!(chain.replay.check(&draft.bytes()).unwrap_err().reason(), "high-hash");
}

#[test]
fn merkle_roots() {
    let chain = Chain::new();
    let mut bytes = chain.valid().bytes();
    bytes[40] ^= 1;
    remine(&mut bytes, &chain.replay.params);
    let refusal = chain.replay.check(&bytes).unwrap_err();
    assert_eq!(refusal.reason(), "bad-txnmrklroot");
    // The last transaction again: the root stays, and the block must not be marked invalid.
    let mut draft = chain.valid();
    let valid = load::hash(&draft.bytes());
    draft.txs.push(draft.txs[2].clone());
    assert_eq!(load::hash(&draft.bytes()), valid, "the same hash");
    let refusal = chain.replay.check(&draft.bytes()).unwrap_err();
    assert_eq!(refusal.reason(), "bad-txns-duplicate");
    assert!(matches!(refusal, Refusal::Block(error) if error.is_mutation()));
}

#[test]
fn coinbases() {
    let chain = Chain::new();
    assert_eq!(chain.reason(|draft| drop(draft.txs.remove(0))), "bad-cb-missing");
    let second = TxDraft::coinbase(Height::new(7), 0);
    assert_eq!(chain.reason(|draft| draft.txs.push(second)), "bad-cb-multiple");
    let short = |draft: &mut BlockDraft| draft.txs[0].inputs[0].script = vec![OP_1];
    assert_eq!(chain.reason(short), "bad-cb-length");
    let wrong = |draft: &mut BlockDraft| draft.txs[0].inputs[0].script[1] ^= 1;
    assert_eq!(chain.reason(wrong), "bad-cb-height");
    // The fee of the first transaction may be taken too, and not one satoshi more.
    let fees = SUBSIDY - 1000;
    let greedy = |more| move |draft: &mut BlockDraft| draft.txs[0].outputs[0].value += more;
    assert_eq!(chain.reason(greedy(fees + 1)), "bad-cb-amount");
    let mut draft = chain.valid();
    greedy(fees)(&mut draft);
    draft.mine();
    assert_eq!(chain.replay.check(&draft.bytes()).unwrap().fees, Amount::from_sat(fees));
}

#[test]
fn prevouts() {
    let mut chain = Chain::new();
    let missing = "bad-txns-inputs-missingorspent";
    assert_eq!(chain.reason(|draft| draft.txs[1].inputs[0].outpoint.vout = 9), missing);
    assert_eq!(chain.reason(|draft| draft.txs.swap(1, 2)), missing);
    // Twice in a block.
    let (first, again) = (chain.valid().txs[1].txid(), TxDraft::spending(&[chain.coin(1)], 2));
    let (outpoint, second) = (chain.coin(1), again.txid());
    let refusal = chain.refusal(chain.valid(), |draft| draft.txs.push(again.clone()));
    assert_eq!(refusal.reason(), missing);
    let expected = PrevoutError::SpentTwice { outpoint, first, second };
    assert!(matches!(refusal, Refusal::Spend(SpendError::Prevout(error)) if error == expected));
    // In two blocks.
    chain.replay.connect(&chain.valid().bytes()).unwrap();
    let draft = chain.draft(vec![again]);
    let refusal = chain.replay.check(&draft.bytes()).unwrap_err();
    assert_eq!(refusal.reason(), missing);
    let expected = PrevoutError::Missing { outpoint, spender: second, spent_by: Some(first) };
    assert!(matches!(refusal, Refusal::Spend(SpendError::Prevout(error)) if error == expected));
    // Twice in a transaction.
    let twice = |draft: &mut BlockDraft| {
        let input = draft.txs[1].inputs[0].clone();
        draft.txs[1].inputs.push(input);
    };
    let draft = chain.draft(vec![chain.spend(2)]);
    assert_eq!(chain.refusal(draft, twice).reason(), "bad-txns-inputs-duplicate");
}

#[test]
fn amounts_and_maturity() {
    let mut chain = Chain::new();
    let over = |draft: &mut BlockDraft| draft.txs[2].outputs[0].value = 1001;
    assert_eq!(chain.reason(over), "bad-txns-in-belowout");
    // Block 111 may spend the coinbase of 11, not that of 12.
    let draft = chain.draft(vec![chain.spend(11)]);
    let young = chain.coin(12);
    let refusal = chain.refusal(draft, |draft| draft.txs[1].inputs[0].outpoint = young);
    assert_eq!(refusal.reason(), "bad-txns-premature-spend-of-coinbase");
    // Impossible coins: their sum, and the sum of the fees, exceed the money supply.
    let rich = [3, 4].map(|height| chain.coin(height));
    for outpoint in rich {
        let value = Amount::MAX_MONEY;
        let script = vec![OP_1];
        let coin = OwnedCoin { height: Height::new(3), coinbase: false, value, script };
        chain.replay.set.insert(outpoint, coin);
    }
    let both = chain.draft(vec![TxDraft::spending(&rich, 1)]);
    let refusal = chain.replay.check(&both.bytes()).unwrap_err();
    assert_eq!(refusal.reason(), "bad-txns-inputvalues-outofrange");
    let each = chain.draft(rich.iter().map(|coin| TxDraft::spending(&[*coin], 1)).collect());
    let refusal = chain.replay.check(&each.bytes()).unwrap_err();
    assert_eq!(refusal.reason(), "bad-txns-accumulated-fee-outofrange");
}

#[test]
fn lock_times() {
    let mut chain = Chain::new();
    let median = chain.replay.headers.last().unwrap().time - 5 * 600;
    let lock = |lock_time| {
        move |draft: &mut BlockDraft| {
            draft.txs[2].lock_time = lock_time;
            draft.txs[2].inputs[0].sequence = 1 << 31;
        }
    };
    assert_eq!(chain.reason(lock(111)), "bad-txns-nonfinal");
    assert_eq!(chain.reason(lock(median)), "bad-txns-nonfinal");
    let mut draft = chain.valid();
    lock(median - 1)(&mut draft);
    draft.mine();
    assert!(chain.replay.check(&draft.bytes()).is_ok());
    // An output of block 111, to be spent in 112.
    chain.replay.connect(&chain.valid().bytes()).unwrap();
    let output = Outpoint::new(chain.spend(1).txid(), 0);
    let parent = TxDraft::spending(&[output], 1);
    let draft = chain.draft(vec![TxDraft::spending(&[Outpoint::new(parent.txid(), 0)], 1)]);
    let wait = |sequence| move |draft: &mut BlockDraft| draft.txs[1].inputs[0].sequence = sequence;
    let by_time = 1 << 22;
    assert_eq!(chain.refusal(draft.clone(), wait(2)).reason(), "bad-txns-nonfinal");
    assert_eq!(chain.refusal(draft.clone(), wait(by_time | 2)).reason(), "bad-txns-nonfinal");
    for (sequence, version) in [(1, 2), (by_time | 1, 2), (2, 1), (1 << 31 | 2, 2)] {
        let mut draft = draft.clone();
        wait(sequence)(&mut draft);
        draft.txs[1].version = version;
        draft.mine();
        assert!(chain.replay.check(&draft.bytes()).is_ok(), "{sequence:x} in version {version}");
    }
}

#[test]
fn sizes() {
    let chain = Chain::new();
    let pad =
        |length| move |draft: &mut BlockDraft| draft.txs[0].outputs[0].script = vec![OP_1; length];
    let fixed = u64::try_from(chain.valid().bytes().len()).unwrap() - 1 + 4;
    let most = usize::try_from(1_000_000 - fixed).unwrap();
    // A transaction in the block is below the limit when the block is above it.
    assert_eq!(chain.reason(pad(most + 1)), "bad-blk-length");
    let mut draft = chain.valid();
    pad(most)(&mut draft);
    draft.mine();
    assert!(chain.replay.check(&draft.bytes()).is_ok());
    // The same with a witness: four million are the most.
    let heavy = |draft: &mut BlockDraft| {
        pad(most - 100)(draft);
        draft.txs[1].inputs[0].witness = vec![vec![1; 500]];
        draft.commit_to_witnesses();
    };
    assert_eq!(chain.reason(heavy), "bad-blk-weight");
}

#[test]
fn signature_operations() {
    let chain = Chain::new();
    let busy = |count| {
        move |draft: &mut BlockDraft| {
            let script = vec![OP_CHECKSIG; count];
            draft.txs[1].outputs.extend(
                [&script[..count / 2], &script[count / 2..]]
                    .map(|script| OutputDraft { value: 0, script: script.to_vec() }),
            );
        }
    };
    assert_eq!(chain.reason(busy(20_001)), "bad-blk-sigops");
    // Twenty for each multisig in a script that is only seen when it is spent.
    let redeem = vec![OP_CHECKMULTISIG; 520];
    let mut chain = chain;
    let p2sh = [&[OP_HASH160, 20][..], &[7; 20], &[OP_EQUAL]].concat();
    let coins = [5, 6].map(|height| chain.coin(height));
    for outpoint in coins {
        let value = Amount::from_sat(1000);
        let script = p2sh.clone();
        let coin = OwnedCoin { height: Height::new(5), coinbase: false, value, script };
        chain.replay.set.insert(outpoint, coin);
    }
    let spend = |coins: &[Outpoint]| {
        let mut tx = TxDraft::spending(coins, 1);
        for input in &mut tx.inputs {
            input.script = [&[0x4d, 0x08, 0x02][..], &redeem].concat();
        }
        chain.replay.check(&chain.draft(vec![tx]).bytes()).unwrap_err()
    };
    assert!(matches!(spend(&coins[..1]), Refusal::Script(_)), "41,600 are not too many");
    let refusal = spend(&coins);
    assert!(
        matches!(refusal, Refusal::Spend(SpendError::Sigops { cost: 83_200, .. })),
        "{refusal}"
    );
    assert_eq!(refusal.reason(), "bad-blk-sigops");
}

#[test]
fn witnesses() {
    let chain = Chain::new();
    let with_witness = |draft: &mut BlockDraft| draft.txs[1].inputs[0].witness = vec![vec![7]];
    assert_eq!(chain.reason(with_witness), "unexpected-witness");
    let committed = |draft: &mut BlockDraft| {
        with_witness(draft);
        draft.commit_to_witnesses();
    };
    // A witness where the script takes none fails later, as a script.
    assert_eq!(chain.reason(committed), "block-script-verify-flag-failed");
    let changed = |draft: &mut BlockDraft| {
        committed(draft);
        draft.txs[1].inputs[0].witness[0][0] ^= 1;
    };
    assert_eq!(chain.reason(changed), "bad-witness-merkle-match");
    let reserved = |draft: &mut BlockDraft| {
        committed(draft);
        draft.txs[0].inputs[0].witness[0].pop();
    };
    assert_eq!(chain.reason(reserved), "bad-witness-nonce-size");
    let refusal = chain.refusal(chain.valid(), changed);
    assert!(matches!(refusal, Refusal::Block(error) if error.is_mutation()));
}

#[test]
fn scripts() {
    let chain = Chain::new();
    let first = chain.spend(1);
    let mut failing = first.clone();
    failing.outputs[0].script = vec![OP_0];
    let spend = TxDraft::spending(&[Outpoint::new(failing.txid(), 0)], 1);
    let draft = chain.draft(vec![failing, spend]);
    let refusal = chain.replay.check(&draft.bytes()).unwrap_err();
    assert_eq!(refusal.reason(), "block-script-verify-flag-failed");
}

/// A signature in the witness of a real block is changed, and the commitment put right.
#[test]
fn a_signature_of_a_real_block() {
    let Some(blocks) = load::kernel() else { return };
    let mut replay = Replay::new(Params::new(Network::Regtest));
    let mut changed = 0;
    for block in &blocks {
        let mut draft = BlockDraft::from(&load::parse(block));
        let input = draft.txs.iter_mut().skip(1).flat_map(|tx| &mut tx.inputs).next();
        if let Some(input) = input.filter(|input| !input.witness.is_empty()) {
            input.witness[0][10] ^= 1;
            draft.commit_to_witnesses();
            draft.mine();
            let refusal = replay.check(&draft.bytes()).unwrap_err();
            assert_eq!(refusal.reason(), "block-script-verify-flag-failed", "{refusal}");
            changed += 1;
        }
        replay.connect(block).unwrap();
    }
    assert!(changed >= 3, "{changed} blocks have signatures in witnesses");
}

#[test]
fn repeated_coinbases() {
    // Without BIP34 two coinbases can be equal.
    let mut chain = Chain::new();
    chain.replay.params.heights.bip34 = NEVER;
    let repeated = chain.coinbases[1].clone();
    let refusal = chain.refusal(chain.valid(), |draft| draft.txs[0] = repeated.clone());
    assert_eq!(refusal.reason(), "bad-txns-BIP30");
    // A block that is excepted by height and hash may.
    let mut draft = chain.draft(Vec::new());
    draft.txs[0] = repeated;
    draft.mine();
    let bytes = draft.bytes();
    let next = chain.replay.next();
    chain.replay.params.bip30_exceptions = vec![(next, load::hash(&chain.valid().bytes()))];
    assert_eq!(chain.replay.check(&bytes).unwrap_err().reason(), "bad-txns-BIP30");
    chain.replay.params.bip30_exceptions = vec![(next, load::hash(&bytes))];
    assert!(chain.replay.check(&bytes).is_ok());
    // Above the block of BIP34 on the known chain this is not checked, until the height where it
    // can happen again.
    chain.replay.params.bip30_exceptions.clear();
    chain.replay.params.heights.bip34 = Height::new(50);
    chain.replay.params.bip34_hash = Some(chain.replay.headers[50].hash);
    let block = load::parse(&bytes);
    let block = BlockAt::new(next, &block);
    let check = |replay: &Replay| {
        let set = &replay.set;
        varve_consensus::check_spends(&replay.params, &block, &replay.headers, set).is_ok()
    };
    assert!(check(&chain.replay));
    chain.replay.params.bip30_again = next;
    assert!(!check(&chain.replay));
    chain.replay.params.bip30_again = NEVER;
    chain.replay.params.bip34_hash = Some(chain.replay.headers[49].hash);
    assert!(!check(&chain.replay), "another chain");
}

#[test]
fn signet_solutions() {
    let Some(blocks) = load::signet() else { return };
    let params = Params::new(Network::Signet);
    let check = |draft: &BlockDraft| {
        let bytes = draft.bytes();
        let block = load::parse(&bytes);
        check_signet_solution(&params, &BlockAt::new(Height::new(1), &block), &CoreVerifier)
    };
    let valid = BlockDraft::from(&load::parse(&blocks[1]));
    assert_eq!(check(&valid), Ok(()));
    let refused = |change: &dyn Fn(&mut BlockDraft)| {
        let mut draft = valid.clone();
        change(&mut draft);
        let error = check(&draft).unwrap_err();
        assert_eq!(error.reject_reason().unwrap(), "bad-signet-blksig");
        match error {
            BlockError::SignetSolution { reason } => reason,
            other => panic!("{other}"),
        }
    };
    let commitment = valid.txs[0].outputs.iter().position(|output| output.value == 0).unwrap();
    let wrong = "it does not satisfy the challenge";
    assert_eq!(refused(&|draft| draft.time += 1), wrong, "the time is signed");
    assert_eq!(refused(&|draft| draft.version += 1), wrong, "so is the version");
    assert_eq!(refused(&|draft| draft.txs[0].lock_time += 1), wrong, "so are the transactions");
    let cut = |draft: &mut BlockDraft| draft.txs[0].outputs[commitment].script.truncate(38);
    assert_eq!(refused(&cut), wrong, "no solution at all");
    let none = |draft: &mut BlockDraft| drop(draft.txs[0].outputs.remove(commitment));
    assert_eq!(refused(&none), "there is no witness commitment");
    let flip = |draft: &mut BlockDraft| draft.txs[0].outputs[commitment].script[60] ^= 1;
    assert_eq!(refused(&flip), wrong);
    // The empty element below the signature is no longer empty: BIP147 holds here too.
    let dummy = |draft: &mut BlockDraft| {
        let script = &mut draft.txs[0].outputs[commitment].script;
        let header = script.windows(4).position(|window| window == [0xec, 0xc7, 0xda, 0xa2]);
        let first = header.unwrap() + 5;
        assert_eq!(std::mem::replace(&mut script[first], OP_1), OP_0);
    };
    assert_eq!(refused(&dummy), wrong);
    // One byte more than the solution says: the push grows by a byte.
    let longer = |draft: &mut BlockDraft| {
        let script = &mut draft.txs[0].outputs[commitment].script;
        let at = if script[38] < 0x4c { 38 } else { 39 };
        script[at] += 1;
        script.push(0);
    };
    assert_eq!(refused(&longer), "it is not a script and a witness");
}

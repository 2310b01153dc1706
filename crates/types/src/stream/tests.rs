//! Any chunking gives what parsing in one piece gives.

use proptest::prelude::*;

use super::*;
use crate::{Block, Network};

/// What a stream gave: offset, bytes and txid of each transaction, and how it ended.
type Outcome = (Vec<(u64, Vec<u8>, Txid)>, Result<Summary, DecodeError>);

fn stream(bytes: &[u8], cuts: &[usize], stream: BlockStream) -> Outcome {
    let mut stream = stream;
    let mut txs = Vec::new();
    let mut headers = 0;
    let mut at = 0;
    for cut in cuts.iter().copied().chain([bytes.len()]) {
        let chunk = &bytes[at..cut];
        let result = stream.push(chunk, |item| match item {
            Item::Header(header) => {
                assert_eq!(header.bytes()[..], bytes[..80]);
                headers += 1;
            }
            Item::Tx { offset, tx, txid } => txs.push((offset, tx.bytes().to_vec(), txid)),
        });
        at = cut;
        if let Err(error) = result {
            assert_eq!(stream.push(&[0], |_| panic!("no item after an error")), Err(error));
            return (txs, stream.finish());
        }
    }
    assert!(headers == 1 || bytes.len() < 80);
    (txs, stream.finish())
}

/// The same by parsing in one piece.
fn whole(bytes: &[u8], format: Format) -> Result<Outcome, DecodeError> {
    let block = Block::parse(bytes, format)?;
    let txs: Vec<_> = block
        .txs_with_offsets()
        .map(|(offset, tx)| (offset as u64, tx.bytes().to_vec(), tx.txid()))
        .collect();
    let summary = Summary {
        header: *block.header().bytes(),
        tx_count: txs.len() as u64,
        length: bytes.len() as u64,
        merkle: block.merkle_tree(),
    };
    Ok((txs, Ok(summary)))
}

fn tx(seed: u8, inputs: usize, witness: bool) -> Vec<u8> {
    let mut bytes = vec![seed, 0, 0, 0];
    bytes.extend_from_slice(if witness { &[0, 1] } else { &[] });
    bytes.push(u8::try_from(inputs).unwrap());
    for _ in 0..inputs {
        bytes.extend_from_slice(&[seed; 36]);
        bytes.extend_from_slice(&[2, 0x51, 0x51, 1, 0, 0, 0]);
    }
    bytes.extend_from_slice(&[1, 8, 0, 0, 0, 0, 0, 0, 0, 1, 0x51]);
    if witness {
        (0..inputs).for_each(|_| bytes.extend_from_slice(&[2, 1, seed, 0]));
    }
    bytes.extend_from_slice(&[0; 4]);
    bytes
}

fn block(txs: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = vec![3; 80];
    compact_size::write(txs.len() as u64, &mut bytes);
    bytes.extend(txs.concat());
    bytes
}

fn any_block() -> impl Strategy<Value = Vec<u8>> {
    let txs = (any::<u8>(), 1_usize..5, any::<bool>());
    prop::collection::vec(txs.prop_map(|(seed, inputs, witness)| tx(seed, inputs, witness)), 0..300)
        .prop_map(|txs| block(&txs))
}

fn sorted_cuts(cuts: &[prop::sample::Index], length: usize) -> Vec<usize> {
    let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(length + 1)).collect();
    cuts.sort_unstable();
    cuts
}

#[test]
fn byte_by_byte() {
    let bytes = block(&[tx(1, 3, true), tx(2, 1, false), tx(3, 2, true)]);
    let cuts: Vec<_> = (0..bytes.len()).collect();
    let outcome = stream(&bytes, &cuts, BlockStream::new(Format::Segwit));
    assert_eq!(outcome, whole(&bytes, Format::Segwit).unwrap());
    assert_eq!(outcome.0.len(), 3);
}

#[test]
fn steps_end_within_transactions() {
    // A transaction of several steps between small ones, in chunks around the size of a step.
    let mut large = tx(5, 1, false);
    let script = vec![0x51; 5 * STEP / 2];
    large.truncate(4 + 1 + 36);
    compact_size::write(script.len() as u64, &mut large);
    large.extend_from_slice(&script);
    large.extend_from_slice(&[0; 4]);
    large.extend_from_slice(&[0, 0, 0, 0, 0]);
    let bytes = block(&[tx(1, 1, true), large, tx(2, 1, false), tx(3, 1, true)]);
    let expected = whole(&bytes, Format::Segwit).unwrap();
    for size in [1000, STEP - 1, STEP, STEP + 1, 2 * STEP + 7, bytes.len()] {
        let cuts: Vec<_> = (0..bytes.len()).step_by(size).collect();
        assert_eq!(stream(&bytes, &cuts, BlockStream::new(Format::Segwit)), expected, "{size}");
    }
}

#[test]
fn memory_is_one_transaction_and_one_step() {
    // 100,000 transactions, 13 MB, in chunks of 1 MB that end within a transaction.
    let small = tx(1, 2, true);
    let count = 100_000;
    let mut bytes = vec![3; 80];
    compact_size::write(count, &mut bytes);
    (0..count).for_each(|_| bytes.extend_from_slice(&small));
    let mut stream = BlockStream::new(Format::Segwit);
    let mut txs = 0;
    for chunk in bytes.chunks(1_000_003) {
        stream.push(chunk, |item| txs += u64::from(matches!(item, Item::Tx { .. }))).unwrap();
        assert!(stream.buffer.capacity() < small.len() + 2 * STEP);
    }
    assert_eq!(txs, count);
    assert_eq!(stream.finish().unwrap().length, bytes.len() as u64);
}

#[test]
fn the_genesis_block_of_every_network() {
    for network in Network::ALL {
        let bytes = network.genesis_block();
        let outcome = stream(&bytes, &[50, 100], BlockStream::new(network.format()));
        assert_eq!(outcome, whole(&bytes, network.format()).unwrap());
    }
}

#[test]
fn bytes_behind_the_block_are_an_error() {
    let mut bytes = block(&[tx(1, 1, false)]);
    bytes.push(0);
    let expected = Block::parse(&bytes, Format::Segwit).unwrap_err();
    for cuts in [&[][..], &[bytes.len() - 1]] {
        let (txs, end) = stream(&bytes, cuts, BlockStream::new(Format::Segwit));
        assert_eq!((txs.len(), end), (1, Err(expected)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_chunking(bytes in any_block(), cuts: [prop::sample::Index; 12]) {
        let cuts = sorted_cuts(&cuts, bytes.len());
        let outcome = stream(&bytes, &cuts, BlockStream::new(Format::Segwit));
        prop_assert_eq!(outcome, whole(&bytes, Format::Segwit).unwrap());
    }

    #[test]
    fn damaged_blocks_fail_alike(
        mut bytes in any_block(),
        damage: [(prop::sample::Index, u8); 2],
        cut: prop::sample::Index,
        cuts: [prop::sample::Index; 6],
    ) {
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.truncate(cut.index(bytes.len() + 1).max(bytes.len() / 2));
        let cuts = sorted_cuts(&cuts, bytes.len());
        let once = stream(&bytes, &[], BlockStream::new(Format::Segwit));
        prop_assert_eq!(&stream(&bytes, &cuts, BlockStream::new(Format::Segwit)), &once);
        match whole(&bytes, Format::Segwit) {
            Ok(expected) => prop_assert_eq!(once, expected),
            // The stream does not know the length, and reads before it finds the same.
            Err(DecodeError { offset: 80, kind: DecodeErrorKind::CountTooLarge { .. } }) => {
                prop_assert!(once.1.is_err());
            }
            Err(error) => prop_assert_eq!(once.1, Err(error)),
        }
    }

    #[test]
    fn the_limit_is_exact(
        bytes in any_block(), limit in 60_u64..260, cuts: [prop::sample::Index; 6],
    ) {
        let cuts = sorted_cuts(&cuts, bytes.len());
        let limited = BlockStream::new(Format::Segwit).tx_limit(limit);
        let (txs, end) = stream(&bytes, &cuts, limited);
        let (all, summary) = whole(&bytes, Format::Segwit).unwrap();
        match all.iter().find(|(_, tx, _)| tx.len() as u64 > limit) {
            None => prop_assert_eq!((txs, end), (all, summary)),
            Some((offset, ..)) => {
                let kind = DecodeErrorKind::TransactionTooLarge { limit };
                prop_assert_eq!(end, Err(DecodeError { offset: *offset, kind }));
                prop_assert!(txs.iter().all(|(at, ..)| at < offset));
            }
        }
    }
}

//! Leaves: round trips, lookups, hostile bytes.

use std::sync::LazyLock;

use proptest::prelude::*;
use varve_io::PAGE_PAYLOAD_LEN;
use varve_types::{Amount, Coin, Height};

use super::*;
use crate::hasher::OutpointHasher;
use crate::packed::pack;
use crate::page_builder::{BODY_MAX, LeafBuilder};

fn hash(outpoint: &Outpoint) -> u64 {
    static HASHER: LazyLock<OutpointHasher> = LazyLock::new(|| OutpointHasher::new(&[9; 16]));
    HASHER.hash(outpoint).bits()
}

/// One entry to be put into a page: outpoint, birth, and the script of its coin unless deleted.
type Put = (Outpoint, u32, Option<Vec<u8>>);

fn outpoint(transaction: u8, vout: u32) -> Outpoint {
    Outpoint::new(Txid::from_bytes([transaction; 32]), vout)
}

fn packed(height: u32, script: &[u8]) -> Vec<u8> {
    let coin = Coin {
        height: Height::new(height),
        coinbase: false,
        value: Amount::from_sat(5_000),
        script,
    };
    let mut bytes = Vec::new();
    pack(&coin, &mut bytes);
    bytes
}

/// The body of an entry, as the writer makes it; births are 700 blocks above heights.
fn body(put: &Put) -> (u16, Vec<u8>) {
    let (outpoint, birth, script) = put;
    let mut out = Vec::new();
    varint::write(u64::from(outpoint.vout), &mut out);
    let Some(script) = script else {
        varint::write(u64::from(*birth), &mut out);
        return (DELETE, out);
    };
    let height = birth.saturating_sub(700);
    varint::write(fold(Sequence::new(*birth), height), &mut out);
    out.extend(packed(height, script));
    (0, out)
}

/// Puts entries into pages, as the writer does.
fn pages(puts: &[Put]) -> Vec<Vec<u8>> {
    let mut pages = Vec::new();
    let mut builder = LeafBuilder::default();
    let mut close = |builder: &LeafBuilder| {
        let mut page = Vec::new();
        builder.encode(&mut page);
        assert!(page.len() <= PAGE_PAYLOAD_LEN);
        page.resize(PAGE_PAYLOAD_LEN, 0);
        pages.push(page);
    };
    for put in puts {
        let (flags, body) = body(put);
        let key = (put.0, hash(&put.0));
        if !builder.push(key.0, key.1, flags, &body) {
            let next = builder.split_tail(builder.tail(&put.0));
            close(&builder);
            builder = next;
            assert!(builder.push(key.0, key.1, flags, &body), "it fits into the next page");
        }
    }
    close(&builder);
    pages
}

fn entries(page: &[u8]) -> Vec<Put> {
    let leaf = Leaf::parse(page).unwrap();
    let entry = |index| {
        let LeafEntry { outpoint, birth, body } = leaf.entry(index).unwrap();
        let script = match body {
            Body::Packed(coin) => {
                let mut script = Vec::new();
                coin.unpack(&mut script).unwrap();
                Some(script)
            }
            Body::Deleted => None,
            Body::Spilled(_) => unreachable!("nothing was spilled"),
        };
        (outpoint, birth.to_u32(), script)
    };
    (0..leaf.len()).map(entry).collect()
}

fn puts() -> impl Strategy<Value = Vec<Put>> {
    let script = prop::collection::vec(any::<u8>(), 0..120);
    let put = (0_u8..12, 0_u32..40, 0_u32..100_000, prop::option::of(script));
    prop::collection::vec(put, 1..300).prop_map(|puts| {
        let puts = puts.into_iter();
        let mut puts: Vec<Put> =
            puts.map(|(tx, vout, birth, script)| (outpoint(tx, vout), birth, script)).collect();
        puts.sort();
        // As the writer demands: of one outpoint at most an add and a delete.
        puts.dedup_by_key(|(outpoint, _, script)| (*outpoint, script.is_some()));
        puts.dedup_by_key(|(outpoint, birth, _)| (*outpoint, *birth));
        let mut seen = 0;
        let mut last = None;
        puts.retain(|(outpoint, _, _)| {
            seen = if last == Some(*outpoint) { seen + 1 } else { 0 };
            last = Some(*outpoint);
            seen < 2
        });
        puts
    })
}

proptest! {
    #[test]
    fn every_entry_comes_back_in_order_and_is_found(puts in puts()) {
        let pages = pages(&puts);
        let back: Vec<Put> = pages.iter().flat_map(|page| entries(page)).collect();
        prop_assert_eq!(&back, &puts);
        for page in &pages {
            let leaf = Leaf::parse(page).unwrap();
            for (outpoint, _, _) in entries(page) {
                let of_it: Vec<&Put> = puts.iter().filter(|put| put.0 == outpoint).collect();
                let mut gone = Vec::new();
                let mut adds = of_it.iter().filter(|put| put.2.is_some()).map(|put| put.1);
                // Each coin is found once all before it are deleted, and in the end there is none.
                loop {
                    let found = leaf.find(hash(&outpoint), &outpoint, &mut gone).unwrap();
                    prop_assert_eq!(found.map(|found| found.birth.to_u32()), adds.next());
                    let Some(found) = found else { break };
                    gone.push(found.birth);
                }
                prop_assert!(of_it.iter().all(|put| gone.contains(&Sequence::new(put.1))));
            }
            let other = Outpoint::new(Txid::from_bytes([0xee; 32]), 1);
            let found = leaf.find(hash(&other), &other, &mut Vec::new());
            prop_assert_eq!(found.unwrap(), None);
        }
    }

    #[test]
    fn an_outpoint_is_never_torn(puts in puts()) {
        let mut last = None;
        for page in pages(&puts) {
            let entries = entries(&page);
            prop_assert!(last != Some(entries[0].0));
            last = entries.last().map(|entry| entry.0);
        }
    }

    #[test]
    fn hostile_bytes_never_panic(
        puts in puts(),
        at in 0..PAGE_PAYLOAD_LEN,
        garbage in prop::collection::vec(any::<u8>(), 1..40),
        cut in 0..PAGE_PAYLOAD_LEN,
    ) {
        let mut page = pages(&puts).swap_remove(0);
        for (place, byte) in page[at..].iter_mut().zip(&garbage) {
            *place = *byte;
        }
        read_all(&page);
        read_all(&page[..cut]);
        read_all(&garbage);
    }

    #[test]
    fn distances_round_trip(birth: u32, height: u32) {
        let birth = Sequence::new(birth);
        prop_assert_eq!(unfold(fold(birth, height), height), Some(birth));
    }
}

/// Decodes whatever there is; only errors are allowed.
fn read_all(page: &[u8]) {
    let Ok(leaf) = Leaf::parse(page) else { return };
    for index in 0..=leaf.len() {
        leaf.touch(index);
        if let Ok(entry) = leaf.entry(index) {
            let _ = leaf.find(hash(&entry.outpoint), &entry.outpoint, &mut Vec::new());
        }
    }
    for tag in 0..=255 {
        let _ = leaf.find_from(leaf.tagged(tag, 0), &outpoint(1, 1), &mut Vec::new());
    }
}

#[test]
fn siblings_share_their_txid() {
    let put = |vout| (outpoint(1, vout), 800, Some(vec![1, 2, 3]));
    let one = pages(&[put(0)]);
    let ten: Vec<Put> = (0..10).map(put).collect();
    let used = |page: &[u8]| usize::from(u16::from_le_bytes([page[2], page[3]]));
    let record = used(&one[0]);
    assert_eq!(used(&pages(&ten)[0]), record + 9 * (record - 31));
}

#[test]
fn a_small_transaction_is_kept_whole_and_a_large_one_repeats_its_txid() {
    let filler = |transaction, count| {
        (0..count).map(move |vout| (outpoint(transaction, vout), 9, Some(vec![7; 60])))
    };
    let whole: Vec<Put> = filler(1, 55).chain(filler(2, 10)).collect();
    let pages_of_whole = pages(&whole);
    assert_eq!(pages_of_whole.len(), 2);
    assert_eq!(entries(&pages_of_whole[1]).len(), 10, "all ten moved on");
    let torn: Vec<Put> = filler(1, 200).collect();
    let pages_of_torn = pages(&torn);
    assert!(pages_of_torn.len() > 3);
    assert!(pages_of_torn.iter().all(|page| entries(page)[0].0.txid == torn[0].0.txid));
}

#[test]
fn two_largest_records_of_one_outpoint_share_a_page() {
    let overhead = body(&(outpoint(1, 0), 800, Some(Vec::new()))).1.len() + 1;
    let largest = Some(vec![7; BODY_MAX - overhead]);
    let puts = [
        (outpoint(1, 0), 800, Some(vec![1; 1500])),
        (outpoint(2, 0), 900, None),
        (outpoint(2, 0), 901, largest.clone()),
        (outpoint(2, 1), 901, largest),
    ];
    let pages = pages(&puts);
    assert_eq!(pages.iter().flat_map(|page| entries(page)).collect::<Vec<_>>(), puts);
}

#[test]
fn a_sibling_that_points_nowhere_is_damage() {
    let page = &pages(&[(outpoint(1, 0), 800, None), (outpoint(1, 1), 801, None)])[0];
    let second = 4 + 3 * 2 + usize::from(u16::from_le_bytes([page[8], page[9]]) & OFFSET_MASK);
    for back in [0, 2, 0x7f] {
        let mut page = page.clone();
        page[second] = back;
        let error = Leaf::parse(&page).unwrap().entry(1).unwrap_err();
        let what = "a sibling has no first of its transaction";
        assert_eq!(error, FormatError::Damaged { at: second, what });
    }
}

#[test]
fn pairs_in_a_large_transaction_are_not_torn() {
    for len in 0..40 {
        let pair = |vout| {
            let add = Some(vec![7; len]);
            [(outpoint(1, vout), 800, None), (outpoint(1, vout), 801, add)]
        };
        let puts: Vec<Put> = (0..500).flat_map(pair).collect();
        let pages = pages(&puts);
        assert!(pages.len() > 1);
        assert!(pages.iter().all(|page| entries(page).len().is_multiple_of(2)), "scripts of {len}");
    }
}

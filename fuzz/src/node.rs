//! The decoders of `varve-node`: messages of other nodes, and commits.
//!
//! An input of the first is a frame and its payload, as they come over the wire. A `version`
//! message may have more fields than we know and any bytes in its name, so the claim is: what was
//! decoded, encoded and decoded again is the same.

use varve_blocks::{BlockNumber, Synced};
use varve_io::GlobalOffset;
use varve_node::CommitSequence;
use varve_node::test_suite::wire::{FRAME_LEN, Frame, Inventory, Message, Version};
use varve_node::test_suite::{Checked, CheckedSpan, Commit};
use varve_types::{BlockHash, Height, Network};

use crate::Target;

pub(crate) const TARGETS: &[Target] = &[
    Target {
        name: "p2p_message",
        run: p2p_message,
        seeds: |examples| {
            examples
                .blocks
                .iter()
                .take(1)
                .cloned()
                .map(Message::Block)
                .chain(messages())
                .map(|message| message.encode(Network::Regtest))
                .collect()
        },
    },
    Target { name: "commit", run: commit, seeds: |_| vec![example_commit().encode()] },
];

/// A commit that decodes encodes to the same bytes.
fn commit(bytes: &[u8]) {
    if let Ok(commit) = Commit::decode(bytes) {
        assert_eq!(commit.encode(), bytes);
    }
}

fn example_commit() -> Commit {
    let hash = BlockHash::from_bytes([7; 32]);
    Commit {
        sequence: CommitSequence(9),
        tip: (Height::new(8), hash),
        number: BlockNumber::new(8),
        fork: Height::new(7),
        synced: Synced { count: 9, position: GlobalOffset::new(1000) },
        marks: vec![(hash, Some("bad-cb-amount: too much".into())), (hash, None)],
        checked: vec![CheckedSpan {
            first: Height::new(1),
            last: Height::new(8),
            checked: Checked::Assumed,
        }],
    }
}

fn p2p_message(bytes: &[u8]) {
    let Some((frame, payload)) = bytes.split_first_chunk::<FRAME_LEN>() else { return };
    let frame = Frame::decode(frame);
    let Ok(message) = Message::decode(frame.command, payload.to_vec()) else { return };
    let again = message.encode(Network::Regtest);
    let (head, payload) = again.split_first_chunk::<FRAME_LEN>().expect("encoded just now");
    let head = Frame::decode(head);
    assert_eq!(head.command, frame.command);
    assert_eq!(head.length as usize, payload.len());
    assert!(head.matches(payload));
    assert_eq!(Message::decode(head.command, payload.to_vec()), Ok(message));
}

fn messages() -> Vec<Message> {
    let hash = BlockHash::from_bytes([7; 32]);
    let version = Version {
        version: 70_016,
        services: 1033,
        time: 1_700_000_000,
        nonce: 5,
        agent: "/Satoshi:31.1.0/".to_owned(),
        height: 900_000,
        relay: true,
    };
    let list = vec![Inventory::block(hash, Network::Regtest), Inventory::block(hash, Network::Bsv)];
    vec![
        Message::Version(version),
        Message::Ping(9),
        Message::GetHeaders(vec![hash; 2]),
        Message::Headers(vec![[3; 80]; 2]),
        Message::Inv(list.clone()),
        Message::NotFound(list),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If the examples were refused, the target would test nothing.
    #[test]
    fn the_examples_decode() {
        for message in messages() {
            let bytes = message.encode(Network::Regtest);
            let (frame, payload) = bytes.split_first_chunk::<FRAME_LEN>().unwrap();
            let frame = Frame::decode(frame);
            assert_eq!(Message::decode(frame.command, payload.to_vec()), Ok(message));
        }
    }
}

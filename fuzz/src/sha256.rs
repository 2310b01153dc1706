//! Hashing in lanes: every backend agrees with one message after the other.

use crate::Target;
use crate::examples::Examples;
use varve_sha256::{Backend, Digest, Message, double};

pub(crate) const TARGETS: &[Target] = &[Target {
    name: "sha256_lanes",
    run: lanes,
    seeds: |examples: &Examples| examples.transactions.clone(),
}];

/// The first byte is how many messages there are; the rest is dealt out to them by the lengths
/// that its own bytes give.
fn lanes(bytes: &[u8]) {
    let Some((count, mut rest)) = bytes.split_first() else { return };
    let mut messages = Vec::new();
    for _ in 0..*count {
        let Some((length, after)) = rest.split_first() else { break };
        let (message, after) = after.split_at(after.len().min(usize::from(*length)));
        messages.push(message);
        rest = after;
    }
    let one_by_one: Vec<Digest> = messages.iter().map(|message| double(*message)).collect();
    let in_pieces = messages.iter().map(|message| {
        let (first, second) = message.split_at(message.len() / 3);
        Message::new(first, &[], second)
    });
    for backend in Backend::available() {
        let mut hashes = Vec::new();
        backend.double_many(in_pieces.clone(), &mut hashes);
        assert_eq!(hashes, one_by_one, "{backend:?}");

        let pairs: Vec<Digest> =
            hashes.chunks_exact(2).map(|pair| double(pair.as_flattened())).collect();
        backend.double_pairs(&mut hashes);
        assert_eq!(hashes.get(..pairs.len()), Some(pairs.as_slice()), "{backend:?}");
    }
}

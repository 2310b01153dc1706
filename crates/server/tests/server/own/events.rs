//! The stream of events: live, and resumed after reorganisations.

use varve_sim::Block;

use super::client::EventStream;
use super::rig::{Rig, blocks};

const EVENTS: &str = "/api/varve/v1/events";

fn id(block: &Block) -> String {
    format!("{}:{}", block.height, block.hash)
}

#[test]
fn a_stream_follows_the_tip_through_a_reorganisation() {
    let chain: Vec<Block> = blocks(40, 9).into_iter().filter(|block| !block.stale).collect();
    let rig = Rig::new(chain[..38].to_vec());
    let mut stream = EventStream::open(&rig.address, EVENTS, &[]);
    let first = stream.next();
    assert_eq!((first.name.as_str(), &first.id), ("tip", &id(&chain[37])));
    assert_eq!(first.data["tip"]["height"], 37);
    rig.sync(&chain[38..40]);
    for block in &chain[38..40] {
        let event = stream.next();
        assert_eq!((event.name.as_str(), &event.id), ("connected", &id(block)), "{event:?}");
        assert_eq!(event.data["block"]["hash"], block.hash.to_string());
    }
    assert_eq!(
        (stream.next().name.as_str(), rig.node.snapshot().tip().height.to_u32()),
        ("tip", 39)
    );
    rig.node.invalidate(chain[38].hash).unwrap();
    for at in [39, 38] {
        let event = stream.next();
        assert_eq!((event.name.as_str(), &event.id), ("disconnected", &id(&chain[at - 1])));
        assert_eq!(event.data["block"]["hash"], chain[at].hash.to_string());
        assert_eq!(event.data["previous"], chain[at - 1].hash.to_string());
    }
    let event = stream.next();
    assert_eq!((event.name.as_str(), event.data["tip"]["height"].as_u64()), ("tip", Some(37)));
}

#[test]
fn a_cursor_resumes_without_loss_and_without_a_duplicate() {
    let rig = Rig::new(blocks(150, 10));
    let active: Vec<&Block> = rig.blocks.iter().filter(|block| !block.stale).collect();
    for start in rig.blocks.iter().filter(|block| block.height >= 140) {
        let query = format!("{EVENTS}?cursor={}", id(start));
        let mut by_query = EventStream::open(&rig.address, &query, &[]);
        let header = id(start);
        let mut by_header =
            EventStream::open(&rig.address, EVENTS, &[("last-event-id", header.as_str())]);
        let mut at = start.clone();
        loop {
            let (event, same) = (by_query.next(), by_header.next());
            assert_eq!((&event.id, &event.name), (&same.id, &same.name));
            match event.name.as_str() {
                "disconnected" => {
                    assert!(at.stale, "{event:?}");
                    assert_eq!(event.data["block"]["hash"], at.hash.to_string());
                    let below = event.data["previous"].as_str().unwrap();
                    let below = rig.blocks.iter().find(|block| block.hash.to_string() == below);
                    at = below.unwrap().clone();
                }
                "connected" => {
                    assert!(!at.stale);
                    at = active[at.height as usize + 1].clone();
                    assert_eq!(event.data["block"]["hash"], at.hash.to_string());
                }
                other => {
                    assert_eq!(other, "tip");
                    assert_eq!(at.hash, active.last().unwrap().hash);
                    break;
                }
            }
            assert_eq!(event.id, id(&at));
        }
    }
}

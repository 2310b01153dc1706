//! Events from a durable cursor: a client that is killed anywhere loses and repeats nothing.

use std::collections::BTreeSet;
use std::path::Path;

use varve::types::Block;
use varve::{
    BlockHash, Event, EventBatch, EventCursor, Height, Node, Outpoint, PushdataRule, ScriptHash,
    Source, Tip, TxStatus, Txid, Watch,
};

use crate::chain::{NETWORK, blocks, bytes, synced};
use crate::mempool::{following, simulated};

/// What a client knows: all of it came by events.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
struct Known {
    chain: Vec<Tip>,
    txs: BTreeSet<(Txid, BlockHash, u32)>,
    scripts: BTreeSet<(ScriptHash, Txid, BlockHash, u32)>,
    spends: BTreeSet<(Outpoint, Txid, u32, BlockHash, u32)>,
}

/// A client that stores its cursor together with what it made of the events.
struct Client {
    watch: Watch,
    known: Known,
    cursor: String,
    /// Batches that were applied.
    applied: usize,
}

fn genesis() -> Tip {
    Tip { height: Height::GENESIS, hash: NETWORK.genesis_hash() }
}

impl Client {
    fn new(watch: Watch) -> Self {
        let known = Known { chain: vec![genesis()], ..Known::default() };
        let cursor = EventCursor::behind(Height::GENESIS, NETWORK.genesis_hash()).to_string();
        Self { watch, known, cursor, applied: 0 }
    }

    fn apply(&mut self, batch: &EventBatch) {
        for event in &batch.events {
            self.take(event);
        }
        self.cursor = batch.cursor.to_string();
        assert_eq!(batch.cursor.block(), *self.known.chain.last().unwrap());
        self.applied += 1;
    }

    fn take(&mut self, event: &Event) {
        let known = &mut self.known;
        match *event {
            Event::Connected { block, previous } => {
                let below = known.chain.last().unwrap();
                assert_eq!(
                    (below.hash, below.height.checked_add(1)),
                    (previous, Some(block.height))
                );
                known.chain.push(block);
            }
            Event::Disconnected { block, previous } => {
                assert_eq!(known.chain.pop(), Some(block));
                assert_eq!(known.chain.last().unwrap().hash, previous);
            }
            Event::Transaction { txid, status } => {
                change(&mut known.txs, status, |block, position| (txid, block, position));
            }
            Event::Script { script, txid, status } => {
                change(&mut known.scripts, status, |block, at| (script, txid, block, at));
            }
            Event::Spend { outpoint, txid, vin, status } => {
                change(&mut known.spends, status, |block, at| (outpoint, txid, vin, block, at));
            }
            _ => panic!("there is no mempool here: {event:?}"),
        }
    }

    /// Takes what there is. Now and then a batch is lost before it is stored, and the client begins
    /// again from what it has stored.
    fn follow(&mut self, node: &Node, dice: &mut u64) {
        let mut roll = move || {
            *dice = dice
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            *dice >> 33
        };
        let open = |client: &Self| {
            let cursor: EventCursor = client.cursor.parse().unwrap();
            node.events(Some(cursor)).watching(client.watch.clone())
        };
        let mut events = open(self);
        while let Some(batch) = events.try_next().unwrap() {
            if roll() % 5 == 0 {
                events = open(self);
                continue;
            }
            self.apply(&batch);
            assert_eq!(events.cursor(), batch.cursor);
            if roll() % 7 == 0 {
                events = open(self);
            }
        }
    }
}

/// Something becomes confirmed once, and is taken back only then.
fn change<T: Ord + std::fmt::Debug>(
    set: &mut BTreeSet<T>,
    status: TxStatus,
    row: impl Fn(BlockHash, u32) -> T,
) {
    match status {
        TxStatus::Confirmed { block, position } => {
            assert!(set.insert(row(block.hash, position)), "{status:?} twice");
        }
        TxStatus::Disconnected { block, position } => {
            assert!(set.remove(&row(block.hash, position)), "{status:?} was not confirmed");
        }
        other => panic!("there is no mempool here: {other:?}"),
    }
}

/// The same by reading every confirmed block.
fn scanned(node: &Node, watch: &[(Txid, ScriptHash, Outpoint)]) -> Known {
    let snapshot = node.snapshot();
    let txids: BTreeSet<_> = watch.iter().map(|(txid, ..)| *txid).collect();
    let scripts: BTreeSet<_> = watch.iter().map(|(_, script, _)| *script).collect();
    let outpoints: BTreeSet<_> = watch.iter().map(|(.., outpoint)| *outpoint).collect();
    let mut known = Known { chain: vec![genesis()], ..Known::default() };
    for height in 1..=snapshot.tip().height.to_u32() {
        let block = snapshot.block(Height::new(height)).unwrap().unwrap();
        let hash = block.header.hash;
        known.chain.push(Tip { height: Height::new(height), hash });
        for (position, tx) in (0..).zip(block.parse().unwrap().txs()) {
            let txid = tx.txid();
            if txids.contains(&txid) {
                known.txs.insert((txid, hash, position));
            }
            let mut touched: Vec<ScriptHash> =
                tx.outputs().map(|output| ScriptHash::of(output.script)).collect();
            for (vin, input) in (0..).zip(tx.inputs()).filter(|_| !tx.is_coinbase()) {
                let spent = snapshot.output(input.outpoint).unwrap().unwrap();
                touched.push(ScriptHash::of(&spent.script));
                if outpoints.contains(&input.outpoint) {
                    known.spends.insert((input.outpoint, txid, vin, hash, position));
                }
            }
            for script in touched.into_iter().filter(|script| scripts.contains(script)) {
                known.scripts.insert((script, txid, hash, position));
            }
        }
    }
    known
}

/// Things to watch: of every fifth transaction of all blocks, stale ones too.
fn things(blocks: &[varve_sim::Block]) -> Vec<(Txid, ScriptHash, Outpoint)> {
    let mut things = Vec::new();
    for block in blocks {
        let parsed = Block::parse(&block.bytes, NETWORK.format()).unwrap();
        for tx in parsed.txs().iter().step_by(5) {
            let script = ScriptHash::of(tx.outputs().next().unwrap().script);
            things.push((tx.txid(), script, Outpoint::new(tx.txid(), 0)));
        }
    }
    things
}

fn watch_of(things: &[(Txid, ScriptHash, Outpoint)]) -> Watch {
    let mut watch = Watch::default();
    for (txid, script, outpoint) in things {
        watch.tx(*txid).script(*script).outpoint(*outpoint);
    }
    watch
}

fn reopened(node: Node, folder: &Path) -> Node {
    drop(node);
    Node::builder().network(NETWORK).datadir(folder).open().unwrap()
}

#[test]
fn a_client_that_is_killed_anywhere_loses_nothing_and_repeats_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let all = blocks(200, 5);
    let things = things(&all);
    let (mut steady, mut late) = (Client::new(watch_of(&things)), Client::new(watch_of(&things)));
    let mut node = synced(folder.path(), &[]);
    let mut dice = 11;
    let mut stale = 0;
    for (number, part) in all.chunks(7).enumerate() {
        node.sync(Source::blocks(bytes(part))).run().unwrap();
        stale += part.iter().filter(|block| block.stale).count();
        steady.follow(&node, &mut dice);
        assert_eq!(steady.known, scanned(&node, &things));
        if number % 4 == 3 {
            // The other client was away, through reorganisations too; the node was restarted.
            node = reopened(node, folder.path());
            late.follow(&node, &mut dice);
            assert_eq!(late.known, steady.known);
        }
    }
    let counts = (stale, steady.known.spends.len(), steady.known.scripts.len());
    assert!(counts.0 > 3 && counts.1 > 20 && counts.2 > 100, "{counts:?}");
    assert!(steady.applied > steady.known.chain.len(), "blocks were disconnected");
}

/// Deeper than any window, and to a lower height.
#[test]
fn an_operator_turns_the_chain_back() {
    let folder = tempfile::tempdir().unwrap();
    let all = blocks(120, 6);
    let things = things(&all);
    let node = synced(folder.path(), &all);
    let mut client = Client::new(watch_of(&things));
    let mut dice = 3;
    client.follow(&node, &mut dice);
    let early = node.snapshot().header(Height::new(12)).unwrap().unwrap();
    node.invalidate(early.hash).unwrap();
    assert_eq!(node.snapshot().tip().height, Height::new(11));
    client.follow(&node, &mut dice);
    assert_eq!(client.known, scanned(&node, &things));
    node.reconsider(early.hash).unwrap();
    client.follow(&node, &mut dice);
    assert_eq!(client.known, scanned(&node, &things));
    assert!(client.known.chain.len() > 100);
}

#[test]
fn a_cursor_of_another_chain_is_refused_and_text_that_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let node = synced(folder.path(), &blocks(3, 1));
    let unknown = EventCursor::behind(Height::new(2), BlockHash::from_bytes([7; 32]));
    let error = node.events(Some(unknown)).try_next().unwrap_err();
    assert!(error.to_string().contains("is not known here"), "{error}");
    let tip = node.snapshot().tip();
    let text = EventCursor::behind(tip.height, tip.hash).to_string();
    assert_eq!(text.parse::<EventCursor>().unwrap().to_string(), text);
    for text in ["", "3", &text[1..], &text[..text.len() - 1], &format!("{text}:"), "a:b:c"] {
        assert!(text.parse::<EventCursor>().is_err(), "{text}");
    }
    assert_eq!(node.events(None).try_next().unwrap(), None, "from now on");
}

/// A subscriber that waits is woken by the block it waits for.
#[test]
fn a_subscriber_is_woken() {
    let folder = tempfile::tempdir().unwrap();
    let all = blocks(6, 2);
    let node = synced(folder.path(), &all[..3]);
    let mut events = node.events(None);
    let waiting = std::thread::spawn(move || events.next().unwrap().unwrap());
    node.sync(Source::blocks(bytes(&all[3..]))).run().unwrap();
    let batch = waiting.join().unwrap();
    assert!(matches!(batch.events[..], [Event::Connected { .. }]));
    assert_eq!(batch.cursor.block().height.to_u32(), all[3].height);
}

/// The index `pushdata` through the front door: pages, at rest and live, and under both rules.
#[test]
fn pushed_items_are_found_at_rest_and_live() {
    let folder = tempfile::tempdir().unwrap();
    let all = blocks(130, 8);
    drop(synced(folder.path(), &all));
    let item = |node: &Node| {
        let snapshot = node.snapshot();
        let block = snapshot.block(Height::new(120)).unwrap().unwrap();
        let parsed = block.parse().unwrap();
        let mut outputs = parsed.txs().iter().flat_map(|tx| tx.outputs());
        let items = |script| PushdataRule::Conduit.of_output(script).next().map(|item| item.hash());
        outputs.find_map(|output| items(output.script)).unwrap()
    };
    let plain = Node::open(folder.path()).unwrap();
    let item = item(&plain);
    assert!(plain.snapshot().pushdata(item).is_err(), "not kept");
    assert_eq!(plain.snapshot().pushdata_rule().unwrap(), None);
    drop(plain);
    let mut found = Vec::new();
    for rule in [PushdataRule::Documented, PushdataRule::Conduit] {
        let indexes = "pushdata".parse().unwrap();
        let builder = Node::builder().datadir(folder.path()).indexes(indexes).pushdata_rule(rule);
        let node = builder.open().unwrap();
        let live = node.snapshot().pushdata(item).unwrap();
        drop(node);
        let node = Node::open(folder.path()).unwrap();
        let snapshot = node.snapshot();
        assert_eq!(snapshot.pushdata_rule().unwrap(), Some(rule));
        assert_eq!(snapshot.pushdata(item).unwrap(), live);
        let (mut paged, mut cursor) = (Vec::new(), None);
        loop {
            let page = snapshot.pushdata_page(item, cursor, 1).unwrap();
            paged.extend(page.rows);
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        paged.sort_by_key(|row| (row.height, row.position));
        assert_eq!(paged, live);
        assert!(live.iter().any(|row| row.height == Height::new(120)));
        found.push(live.len());
    }
    assert!(found[0] >= found[1], "the documented rule takes more");
}

/// Waits for the next batch.
fn next(events: &mut varve::Events) -> EventBatch {
    events.next_timeout(std::time::Duration::from_secs(30)).unwrap().expect("something happens")
}

/// An unconfirmed transaction comes, is not repeated to a client that knows it, is stated to one
/// that does not, and is confirmed by a block.
#[test]
fn unconfirmed_transactions_are_reported_and_confirmed() {
    let folder = tempfile::tempdir().unwrap();
    let (blocks, _) = simulated();
    let (last, below) = blocks.split_last().unwrap();
    let node = Node::builder().network(NETWORK).datadir(folder.path()).create().unwrap();
    let (maker, sync) = following(&node, below);
    let parsed = Block::parse(last, NETWORK.format()).unwrap();
    let own: BTreeSet<Txid> = parsed.txids().into_iter().collect();
    let is_free = |tx: &&varve::types::Tx<'_>| {
        !tx.is_coinbase() && tx.inputs().all(|input| !own.contains(&input.outpoint.txid))
    };
    let (position, tx) = (0..).zip(parsed.txs()).find(|(_, tx)| is_free(tx)).unwrap();
    let (txid, outpoint) = (tx.txid(), tx.inputs().next().unwrap().outpoint);
    let script = ScriptHash::of(tx.outputs().next().unwrap().script);
    let mut watch = Watch::default();
    watch.tx(txid).script(script).outpoint(outpoint);
    let mut events = node.events(None).watching(watch.clone());
    let empty = next(&mut events);
    assert_eq!(empty.events, [Event::Restated], "nothing is unconfirmed");

    let happens = |status| {
        vec![
            Event::Transaction { txid, status },
            Event::Script { script, txid, status },
            Event::Spend { outpoint, txid, vin: 0, status },
        ]
    };
    node.broadcast(tx.bytes()).unwrap();
    let batch = next(&mut events);
    assert_eq!(batch.events, happens(TxStatus::Unconfirmed));
    assert_eq!(events.try_next().unwrap(), None);
    let resume = |cursor: EventCursor| {
        let cursor: EventCursor = cursor.to_string().parse().unwrap();
        node.events(Some(cursor)).watching(watch.clone())
    };
    assert_eq!(resume(batch.cursor).try_next().unwrap(), None, "it knows");
    let restated = [vec![Event::Restated], happens(TxStatus::Unconfirmed)].concat();
    assert_eq!(resume(empty.cursor).try_next().unwrap().unwrap().events, restated);

    maker.send(varve::LiveItem::Block(last.clone())).unwrap();
    let mut connected = next(&mut events);
    // Another transaction of the block may touch the script too.
    let is_other = |event: &Event| matches!(event, Event::Script { txid: of, .. } if *of != txid);
    connected.events.retain(|event| !is_other(event));
    let block = node.snapshot().tip();
    let previous = batch.cursor.block().hash;
    let status = TxStatus::Confirmed { block, position };
    let expected = [vec![Event::Connected { block, previous }], happens(status)].concat();
    assert_eq!(connected.events, expected);
    assert_eq!(events.try_next().unwrap(), None, "leaving the mempool for a block is no loss");
    sync.stop();
    sync.wait().unwrap();
}

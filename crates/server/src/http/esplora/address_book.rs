//! `/address-prefix/…`: addresses that begin with a text.
//!
//! No table of the node is sorted by address, so this searches a book of its own, in memory: the
//! addresses that outputs of the newest blocks pay, up to [`ADDRESSES`] of them (a block of mainnet
//! has some 5,000, so about 50 blocks; a small chain is there whole). A text that is a whole
//! address is found wherever in the chain it was used.
//!
//! The book is filled at the first question and brought to the tip at each later one:
//!
//! ```text
//!  blocks   oldest ─ … ─ newest        each with the addresses it pays
//!  names    address ─► in how many of these blocks
//! ```
//!
//! Blocks that left the chain are taken out first, then those that came are added, from the tip
//! down to where the book is or to where it is full, and the oldest go when it is too full.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;
use std::sync::{Arc, PoisonError};

use axum::extract::{Path, State};
use varve::types::address;
use varve::{BlockHash, Error, Height, Network};

use super::super::answer::{Answer, Refusal};
use super::super::api::{Moment, Shared};
use super::{Refusals, script_of};

/// Addresses in the book, counted once for each block: at most some 40 MB.
const ADDRESSES: usize = 250_000;
/// Addresses of an answer.
const FOUND: usize = 10;
/// The longest text that an address can begin with.
const LONGEST: usize = 90;

/// The addresses that the newest blocks pay.
#[derive(Debug, Default)]
pub(crate) struct AddressBook {
    /// The oldest first.
    blocks: VecDeque<Page>,
    names: BTreeMap<Arc<str>, u32>,
    /// Addresses of all pages.
    count: usize,
}

#[derive(Debug)]
struct Page {
    height: Height,
    hash: BlockHash,
    names: Vec<Arc<str>>,
}

impl AddressBook {
    /// Brings the book to the tip of a moment.
    fn update(&mut self, moment: &Moment<'_>) -> Result<(), Refusal> {
        while let Some(page) = self.blocks.back() {
            if moment.snapshot.header(page.hash)?.is_some_and(|header| header.confirmed) {
                break;
            }
            if let Some(page) = self.blocks.pop_back() {
                self.forget(&page);
            }
        }
        let known = self.blocks.back().map(|page| page.height);
        let (mut new, mut count) = (Vec::new(), 0);
        let mut next = Some(moment.tip().height);
        while let Some(height) = next.filter(|height| Some(*height) != known && count < ADDRESSES) {
            let Some(page) = page(moment, height)? else {
                // Pruned: the book goes down to here.
                next = known;
                break;
            };
            count += page.names.len();
            new.push(page);
            next = height.checked_sub(1);
        }
        if next.is_some() && next != known {
            // The new blocks fill the book, and there is a gap below them.
            *self = Self::default();
        }
        new.into_iter().rev().for_each(|page| self.add(page));
        while self.count > ADDRESSES && self.blocks.len() > 1 {
            if let Some(page) = self.blocks.pop_front() {
                self.forget(&page);
            }
        }
        Ok(())
    }

    fn add(&mut self, page: Page) {
        self.count += page.names.len();
        let mut names = Vec::with_capacity(page.names.len());
        for name in &page.names {
            // The book and its pages share one copy of the text.
            let shared = self.names.get_key_value(name).map_or(name, |(known, _)| known).clone();
            *self.names.entry(Arc::clone(&shared)).or_default() += 1;
            names.push(shared);
        }
        self.blocks.push_back(Page { names, ..page });
    }

    fn forget(&mut self, page: &Page) {
        self.count -= page.names.len();
        for name in &page.names {
            let left = self.names.get_mut(name).map(|count| {
                *count -= 1;
                *count
            });
            if left == Some(0) {
                self.names.remove(name);
            }
        }
    }

    /// Addresses that begin with this text, in the order of their bytes.
    fn find(&self, prefix: &str) -> Vec<String> {
        let from = (Bound::Included(prefix), Bound::Unbounded);
        let found = self.names.range::<str, _>(from).map(|(name, _)| name);
        found
            .take_while(|name| name.starts_with(prefix))
            .take(FOUND)
            .map(|name| name.as_ref().to_owned())
            .collect()
    }
}

/// The addresses that the block at a height pays; `None` when it was pruned.
fn page(moment: &Moment<'_>, height: Height) -> Result<Option<Page>, Refusal> {
    let block = match moment.snapshot.block(height) {
        Err(Error::Pruned { .. }) => return Ok(None),
        found => found?,
    };
    let Some(block) = block else { return Ok(None) };
    let parsed = block.parse()?;
    let outputs = parsed.txs().iter().flat_map(varve::types::Tx::outputs);
    let names = outputs.filter_map(|output| address::encode(output.script, moment.network()));
    let names: BTreeSet<String> = names.collect();
    let names = names.into_iter().map(Arc::from).collect();
    Ok(Some(Page { height, hash: block.header.hash, names }))
}

/// The address that a text is, if it was ever used.
fn whole(moment: &Moment<'_>, text: &str) -> Option<String> {
    let network: Network = moment.network();
    let script = script_of(text, network).ok()?;
    let summary = moment.snapshot.script(script).ok()?.summary().ok()?;
    (summary.txs > 0).then(|| text.to_owned())
}

/// Up to ten addresses that begin with a text: of the newest blocks, or any that is written whole.
#[utoipa::path(get, path = "/address-prefix/{prefix}", tag = "Esplora",
    params(("prefix" = String, Path, min_length = 1, max_length = 90)),
    responses((status = 200, body = Vec<String>), Refusals))]
pub(super) async fn address_prefix(
    State(api): State<Shared>,
    Path(prefix): Path<String>,
) -> Answer {
    api.ask(move |moment| {
        if prefix.len() > LONGEST || !prefix.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Err(Refusal::bad("no address begins so"));
        }
        let mut book = moment.api.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        book.update(moment)?;
        let mut found = book.find(&prefix);
        drop(book);
        if found.is_empty() {
            found.extend(whole(moment, &prefix));
        }
        Ok(Answer::json(&found))
    })
    .await
}

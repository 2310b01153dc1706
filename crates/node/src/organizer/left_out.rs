//! What a sync leaves out, and how much work it would have added: refused blocks, headers that did
//! not get into the tree, records of a file that cannot be read.
//!
//! The tree has no row for a refused header, nor for the headers above it. They are noted here when
//! the user vouches for them (own files, an own node) or when nothing but our clock speaks against
//! them. The headers of a peer that is to blame cost it nothing, so they count for nothing.
//!
//! ```text
//! tree       ■ ■ ■ ■           tip
//! left out         └ ✗ □ □ □   a refused header and three above it: more work than the tip has
//! ```
//!
//! A header that was refused proves no work, so it counts as much as the block below it does, and
//! so does each header above it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use varve_consensus::Work;
use varve_types::{BlockHash, Header};

use crate::header_tree::{HeaderId, HeaderTree, Invalid};
use crate::source::{HeaderBytes, Warning};

/// What was left out of the chain by one sync.
#[derive(Default)]
pub(crate) struct LeftOut {
    /// The blocks and headers that were refused.
    refused: HashSet<BlockHash>,
    /// Headers that are not in the tree: the refused block that each goes back to, and the work up
    /// to the header.
    headers: HashMap<BlockHash, (BlockHash, Work)>,
    causes: BTreeMap<BlockHash, Cause>,
    unread: Vec<Unread>,
    /// The source was peers that nobody vouches for.
    is_of_peers: bool,
}

/// Why headers are not in the tree: a refused block.
struct Cause {
    reason: Arc<str>,
    /// What each of the headers counts.
    step: Work,
    /// The most work up to any of them.
    best: Work,
    /// How many headers.
    count: u64,
}

/// A record that could not be read.
struct Unread {
    warning: Warning,
    /// The work up to its block; `None` when that is not known.
    work: Option<Work>,
}

/// A refused header that is not in the tree.
pub(crate) struct RefusedHeader {
    pub(crate) invalid: Invalid,
    /// How many headers above it were left out.
    pub(crate) above: u64,
}

impl LeftOut {
    /// Nothing yet, of a source that is trusted or not.
    pub(crate) fn new(is_trusted: bool) -> Self {
        Self { is_of_peers: !is_trusted, ..Self::default() }
    }

    /// Whether the source was peers that nobody vouches for.
    pub(crate) const fn is_of_peers(&self) -> bool {
        self.is_of_peers
    }

    /// Notes that a block or header was refused. `false`: it was before.
    pub(crate) fn refuse(&mut self, hash: BlockHash) -> bool {
        self.refused.insert(hash)
    }

    /// Whether a block or header was refused.
    pub(crate) fn is_refused(&self, hash: &BlockHash) -> bool {
        self.refused.contains(hash)
    }

    /// Notes a header that is not in the tree, because of this block, which is refused: its own, or
    /// one below.
    pub(crate) fn add_header(
        &mut self,
        tree: &HeaderTree,
        header: Header<'_>,
        block: BlockHash,
        reason: &str,
    ) {
        if tree.find(&header.hash()).is_some() || self.add_above(header) {
            return;
        }
        let Some(parent) = tree.find(&header.previous()) else { return };
        self.causes.entry(block).or_insert_with(|| Cause {
            reason: Arc::from(reason),
            step: block_work(tree, parent),
            best: tree.work(parent),
            count: 0,
        });
        self.add(block, header.hash(), tree.work(parent));
    }

    /// Notes a header above one that is noted. `false`: it is above none.
    pub(crate) fn add_above(&mut self, header: Header<'_>) -> bool {
        let hash = header.hash();
        if self.headers.contains_key(&hash) {
            return true;
        }
        let below = self.headers.get(&header.previous()).copied();
        if let Some((cause, work)) = below {
            self.add(cause, hash, work);
        }
        below.is_some()
    }

    fn add(&mut self, block: BlockHash, hash: BlockHash, below: Work) {
        let Some(cause) = self.causes.get_mut(&block) else { return };
        let work = below.plus(cause.step);
        cause.best = cause.best.max(work);
        cause.count += 1;
        self.headers.insert(hash, (block, work));
    }

    /// Notes what a source could not read.
    pub(crate) fn warned(&mut self, tree: &HeaderTree, warning: &Warning) {
        let header: Option<&HeaderBytes> = match warning {
            Warning::Unlinked { .. } => None,
            Warning::Incomplete { header, .. } => header.as_ref(),
            _ => return,
        };
        let header = header.map(Header::new);
        // Of what is in the tree the tree says whether it is missing.
        if header.is_some_and(|header| tree.find(&header.hash()).is_some()) {
            return;
        }
        let parent = header.and_then(|header| tree.find(&header.previous()));
        let work = parent.map(|parent| tree.work(parent).plus(block_work(tree, parent)));
        self.unread.push(Unread { warning: warning.clone(), work });
    }

    /// A refused header whose branch would have more work than the tip.
    pub(crate) fn better_header(&self, tree: &HeaderTree, tip: Work) -> Option<RefusedHeader> {
        // A header that was too early may have been taken since.
        let is_out =
            |block: &BlockHash| tree.find(block).is_none_or(|id| tree.invalid(id).is_some());
        let mut causes = self.causes.iter().filter(|(block, _)| is_out(block));
        let (block, cause) = causes.find(|(_, cause)| cause.best > tip)?;
        let is_itself = u64::from(self.headers.contains_key(block));
        let invalid = Invalid { block: *block, reason: cause.reason.clone() };
        Some(RefusedHeader { invalid, above: cause.count - is_itself })
    }

    /// What could not be read, if it may have more work than the tip.
    pub(crate) fn better_unread(&self, tip: Work) -> Option<&Warning> {
        let unread = self.unread.iter().find(|unread| unread.work.is_none_or(|work| work > tip));
        unread.map(|unread| &unread.warning)
    }
}

/// The work of one block.
fn block_work(tree: &HeaderTree, id: HeaderId) -> Work {
    let below = tree.parent(id).map_or(Work::ZERO, |parent| tree.work(parent));
    tree.work(id).minus(below)
}

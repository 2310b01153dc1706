//! The data directory that the options name, as a builder of the library.
//!
//! A command that runs in the process that holds the folder gets the node that is open there.

use std::path::Path;

use anyhow::Result;
use varve::{Builder, Network, Node, UnspentSet};

use crate::args::Global;
use crate::progress::Lazy;

/// The folder of a database, and how it is opened.
pub(crate) struct DataDir<'a> {
    root: Option<&'a Path>,
    network: Network,
    memory: u64,
    held: Option<&'a Node>,
}

impl<'a> DataDir<'a> {
    /// The folder that the options name.
    pub(crate) fn new(global: &'a Global) -> Self {
        let Global { network, memory, .. } = *global;
        let (root, held) = (global.datadir.as_deref(), global.held.as_ref());
        Self { root, network, memory, held }
    }

    /// This folder.
    pub(crate) const fn at(root: &'a Path, network: Network, memory: u64) -> Self {
        Self { root: Some(root), network, memory, held: None }
    }

    /// The builder of its node, which shows when the archive is rebuilt.
    pub(crate) fn builder(&self) -> Builder {
        self.builder_showing("archive")
    }

    /// The same, which calls the rebuilding `what`.
    pub(crate) fn builder_showing(&self, what: &'static str) -> Builder {
        let mut progress = Lazy::new(what);
        let builder = Node::builder()
            .network(self.network)
            .memory(self.memory)
            .on_rebuild(move |done, all| progress.set(done, all));
        match (self.held.map(Node::path), self.root) {
            (Some(root), _) | (None, Some(root)) => builder.datadir(root),
            (None, None) => builder,
        }
    }

    /// The node, which must be there.
    pub(crate) fn open_node(&self) -> Result<Node> {
        match self.held {
            Some(node) => Ok(node.clone()),
            None => Ok(self.builder().open()?),
        }
    }

    /// The unspent set of the node, or one that was imported alone.
    pub(crate) fn open_unspent(&self) -> Result<UnspentSet> {
        match self.held {
            Some(node) => Ok(node.snapshot().unspent()?),
            None => Ok(self.builder().open_unspent()?),
        }
    }
}

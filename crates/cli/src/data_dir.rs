//! The data directory that the options name, as a builder of the library.

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
}

impl<'a> DataDir<'a> {
    /// The folder that the options name.
    pub(crate) fn new(global: &'a Global) -> Self {
        let Global { network, memory, .. } = *global;
        Self { root: global.datadir.as_deref(), network, memory }
    }

    /// This folder.
    pub(crate) const fn at(root: &'a Path, network: Network, memory: u64) -> Self {
        Self { root: Some(root), network, memory }
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
        match self.root {
            Some(root) => builder.datadir(root),
            None => builder,
        }
    }

    /// Opens the node, which must be there.
    pub(crate) fn open_node(&self) -> Result<Node> {
        Ok(self.builder().open()?)
    }

    /// Opens the unspent set of the node, or one that was imported alone.
    pub(crate) fn open_unspent(&self) -> Result<UnspentSet> {
        Ok(self.builder().open_unspent()?)
    }
}

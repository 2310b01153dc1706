//! A chain under all rules, block by block, with the oracle as its set.

use std::num::NonZeroUsize;

use varve_consensus::{
    Ancestor, BlockAt, BlockError, CheckError, CoreVerifier, HeaderError, MemorySet, Params,
    ScriptError, SpendError, Spending, Undo, check_block, check_block_context, check_header,
    check_scripts, check_signet_solution, check_spends,
};
use varve_types::{Block, Height};

use crate::load::header;

/// Later than every block here.
pub(crate) const NOW: u32 = 2_000_000_000;

/// Any verdict.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    #[error(transparent)]
    Header(#[from] HeaderError),
    #[error(transparent)]
    Block(#[from] BlockError),
    #[error(transparent)]
    Spend(#[from] SpendError),
    #[error(transparent)]
    Script(#[from] ScriptError),
}

impl Refusal {
    pub(crate) fn reason(&self) -> String {
        let reason = match self {
            Self::Header(error) => error.reject_reason(),
            Self::Block(error) => error.reject_reason(),
            Self::Spend(error) => error.reject_reason(),
            Self::Script(error) => error.reject_reason(),
        };
        reason.map_or_else(|| format!("no verdict: {self}"), |reason| reason.into_owned())
    }
}

pub(crate) fn invalid<V>(error: CheckError<V, std::convert::Infallible>) -> V {
    match error {
        CheckError::Invalid(verdict) => verdict,
        CheckError::View(never) => match never {},
    }
}

/// A chain: headers, set, and how to go back.
pub(crate) struct Replay {
    pub(crate) params: Params,
    pub(crate) headers: Vec<Ancestor>,
    pub(crate) set: MemorySet,
    undo: Vec<(Vec<u8>, Undo)>,
    /// The verifier does not know the scripts of BSV.
    pub(crate) scripts: bool,
}

impl Replay {
    pub(crate) fn new(params: Params) -> Self {
        let set = MemorySet::new(params.network);
        let scripts = !params.network.is_bsv();
        Self { params, headers: Vec::new(), set, undo: Vec::new(), scripts }
    }

    pub(crate) fn next(&self) -> Height {
        Height::new(u32::try_from(self.headers.len()).unwrap())
    }

    /// All rules over a block above the last one.
    pub(crate) fn check(&self, bytes: &[u8]) -> Result<Spending, Refusal> {
        let block = Block::parse(bytes, self.params.network.format()).unwrap();
        let block = BlockAt::new(self.next(), &block);
        check_header(&self.params, header(bytes), self.next(), &self.headers, NOW)?;
        check_block(&self.params, &block)?;
        check_block_context(&self.params, &block, &self.headers)?;
        check_signet_solution(&self.params, &block, &CoreVerifier)?;
        let spending =
            check_spends(&self.params, &block, &self.headers, &self.set).map_err(invalid)?;
        if self.scripts {
            let threads = NonZeroUsize::new(2).unwrap();
            check_scripts(&self.params, &block, &self.set, &CoreVerifier, threads)
                .map_err(invalid)?;
        }
        Ok(spending)
    }

    /// Checks and connects a block.
    pub(crate) fn connect(&mut self, bytes: &[u8]) -> Result<Spending, Refusal> {
        let spending = self.check(bytes)?;
        let block = Block::parse(bytes, self.params.network.format()).unwrap();
        let undo = self.set.connect(&BlockAt::new(self.next(), &block)).expect("just checked");
        self.headers.push(Ancestor::from(header(bytes)));
        self.undo.push((bytes.to_vec(), undo));
        Ok(spending)
    }

    /// Connects blocks that must all pass.
    pub(crate) fn connect_all(&mut self, blocks: &[Vec<u8>]) {
        for block in blocks {
            let height = self.next();
            if let Err(refusal) = self.connect(block) {
                panic!("the block at {height} is refused: {refusal}");
            }
        }
    }

    /// Disconnects the last block.
    pub(crate) fn disconnect(&mut self) {
        let (bytes, undo) = self.undo.pop().unwrap();
        self.headers.pop();
        let block = Block::parse(&bytes, self.params.network.format()).unwrap();
        let at = BlockAt::new(self.next(), &block);
        self.set.disconnect(&at, undo);
    }
}

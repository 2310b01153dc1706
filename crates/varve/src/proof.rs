//! Proofs that a transaction is in a block.
//!
//! A proof is the transaction, the 80 bytes of its block's header, and the hashes beside the way
//! from its txid to the merkle root. It is Electrum's proof as it stands ([`Proof::branch`]);
//! [`Proof::tsc`] writes it in the TSC standard format, with repeated nodes marked.

use varve_types::merkle::MerkleBranch;
use varve_types::proof::{Target, TscProof};
use varve_types::{Header, Height, MerkleRoot};

use crate::answer::Transaction;
use crate::error::Error;
use crate::snapshot::Snapshot;

pub use varve_archive::HeaderProof;

impl Snapshot {
    /// That the confirmed block at `target` is under the root over the hashes of all blocks up to
    /// `checkpoint`, as Electrum's `cp_height` asks for; `None` when the checkpoint is above the
    /// tip or below the target. Hashes 2,048 block hashes, and 12 nodes more at a million blocks.
    pub fn header_proof(
        &self,
        target: Height,
        checkpoint: Height,
    ) -> Result<Option<HeaderProof>, Error> {
        self.ask(|view| Ok(view.header_proof(target, checkpoint)?))
    }
}

/// A proof that a transaction is in a block: [`Snapshot::proof`](crate::Snapshot::proof).
#[derive(Debug)]
pub struct Proof {
    /// The transaction, and the block it is proven for.
    pub tx: Transaction,
    /// The position in the block and the sibling at each level of the merkle tree, from below.
    pub branch: MerkleBranch,
    pub(crate) header: [u8; Header::LEN],
}

/// How a proof in the TSC format names its block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProofTarget {
    /// By its hash.
    #[default]
    Hash,
    /// By the bytes of its header.
    Header,
    /// By its merkle root.
    MerkleRoot,
}

impl Proof {
    /// The header of the block, as it is hashed.
    #[must_use]
    pub const fn header(&self) -> Header<'_> {
        Header::new(&self.header)
    }

    /// The proof in the TSC standard format, which names the transaction by its txid.
    /// [`TscProof::with_transaction`] puts its bytes there instead.
    #[must_use]
    pub fn tsc(&self, target: ProofTarget) -> TscProof {
        let target = match target {
            ProofTarget::Hash => Target::BlockHash(self.tx.block.hash),
            ProofTarget::Header => Target::Header(self.header),
            ProofTarget::MerkleRoot => Target::MerkleRoot(self.tx.block.merkle_root),
        };
        TscProof::new(&self.branch, self.tx.txid, target)
    }

    /// Whether the branch leads from the txid to the merkle root of the header.
    pub(crate) fn holds(&self) -> bool {
        let root: Option<MerkleRoot> = self.branch.root(self.tx.txid.to_bytes());
        root == Some(self.header().merkle_root())
    }
}

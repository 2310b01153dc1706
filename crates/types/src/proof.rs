//! Merkle proofs in the TSC standard format (TS 2020.010-31), which prove that a transaction is in
//! a block.
//!
//! ```text
//! │ flags u8 │ index CompactSize │ txid 32, or CompactSize ‖ transaction │ target 32 or 80 │
//! │ node count CompactSize │ node … │
//!
//! node   00 ‖ hash 32    the sibling
//!        01              the sibling repeats the node beside it (an odd last node)
//! ```
//!
//! | flag | meaning |
//! |---|---|
//! | `01` | the whole transaction is there, not its txid |
//! | `02` | the target is the block header |
//! | `04` | the target is the merkle root; with neither flag it is the block hash |
//! | `08`, `10` | a tree, and several proofs in one: nobody writes these, and they are refused |
//!
//! Hashes are in internal order. The text form (JSON) reverses them and writes `*` for a repeated
//! node; the server writes it from the public fields.
//!
//! Electrum's form of the same proof is a [`MerkleBranch`]: the index and every sibling spelled
//! out.
//!
//! A proof from others is checked by [`TscProof::verify`] against a header that the caller trusts.
//! A repeated node may be marked or spelled out. It can only be a *right* sibling: a left one would
//! let the same transaction be proven at two positions (CVE-2012-2459).

use crate::compact_size;
use crate::error::{DecodeError, DecodeErrorKind};
use crate::format::Format;
use crate::hash::{BlockHash, MerkleRoot, Txid, sha256d};
use crate::header::Header;
use crate::merkle::MerkleBranch;
use crate::reader::Reader;
use crate::tx::Tx;

const FULL_TRANSACTION: u8 = 1;
const TARGET_HEADER: u8 = 1 << 1;
const TARGET_MERKLE_ROOT: u8 = 1 << 2;

const NODE_HASH: u8 = 0;
const NODE_DUPLICATE: u8 = 1;

/// The maximum number of levels: an index has 64 bits.
const MAX_NODES: u64 = 64;

/// A proof that a transaction is in a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TscProof {
    /// The position of the transaction in the block.
    pub index: u64,
    /// What is proven.
    pub subject: Subject,
    /// The block it is proven for.
    pub target: Target,
    /// The siblings on the way from the transaction to the root.
    pub nodes: Vec<ProofNode>,
}

/// How a proof names its transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// By its txid.
    Txid(Txid),
    /// By all of its bytes.
    Transaction(Vec<u8>),
}

/// How a proof names its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// By its hash.
    BlockHash(BlockHash),
    /// By its header.
    Header([u8; Header::LEN]),
    /// By the root of its merkle tree.
    MerkleRoot(MerkleRoot),
}

/// A sibling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProofNode {
    /// Another node of the tree.
    Hash([u8; 32]),
    /// The node itself, repeated because it is an odd last one.
    Duplicate,
}

/// Why a proof does not hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProofError {
    /// The target is another block.
    #[error("the proof is for another block: verify it against the header that its target names")]
    OtherBlock,
    /// The transaction does not parse.
    #[error("the transaction in the proof does not decode: {0}")]
    Transaction(#[from] DecodeError),
    /// A repeated node on the left.
    #[error("node {level} of the proof repeats the node to its right, which no merkle tree does")]
    LeftDuplicate {
        /// The level, from the transaction up.
        level: usize,
    },
    /// An index beyond the tree.
    #[error("the proof is for position {index}, which a tree of {levels} levels does not have")]
    IndexTooLarge {
        /// The claimed position.
        index: u64,
        /// How many siblings there are.
        levels: usize,
    },
    /// Another root.
    #[error("the proof leads to {found}, but the root of the block is {expected}")]
    OtherRoot {
        /// What the proof leads to.
        found: MerkleRoot,
        /// What the header says.
        expected: MerkleRoot,
    },
}

impl TscProof {
    /// The proof of this transaction by its branch, with repeated nodes marked.
    #[must_use]
    pub fn new(branch: &MerkleBranch, txid: Txid, target: Target) -> Self {
        let (mut node, mut index) = (txid.to_bytes(), branch.index);
        let mut nodes = Vec::with_capacity(branch.siblings.len());
        for sibling in &branch.siblings {
            // In a tree of different transactions, paired nodes are equal only for this reason.
            nodes.push(match node == *sibling {
                true => ProofNode::Duplicate,
                false => ProofNode::Hash(*sibling),
            });
            node = parent(node, *sibling, index);
            index /= 2;
        }
        Self { index: branch.index, subject: Subject::Txid(txid), target, nodes }
    }

    /// The same proof with the whole transaction in it, which is the one that was proven.
    #[must_use]
    pub fn with_transaction(self, bytes: Vec<u8>) -> Self {
        Self { subject: Subject::Transaction(bytes), ..self }
    }

    /// Appends the binary form.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let full = match self.subject {
            Subject::Txid(_) => 0,
            Subject::Transaction(_) => FULL_TRANSACTION,
        };
        let target = match self.target {
            Target::BlockHash(_) => 0,
            Target::Header(_) => TARGET_HEADER,
            Target::MerkleRoot(_) => TARGET_MERKLE_ROOT,
        };
        out.push(full | target);
        compact_size::write(self.index, out);
        match &self.subject {
            Subject::Txid(txid) => out.extend(txid.as_bytes()),
            Subject::Transaction(bytes) => {
                compact_size::write(bytes.len() as u64, out);
                out.extend(bytes);
            }
        }
        match &self.target {
            Target::BlockHash(hash) => out.extend(hash.as_bytes()),
            Target::Header(header) => out.extend(header),
            Target::MerkleRoot(root) => out.extend(root.as_bytes()),
        }
        compact_size::write(self.nodes.len() as u64, out);
        for node in &self.nodes {
            match node {
                ProofNode::Hash(hash) => {
                    out.push(NODE_HASH);
                    out.extend(hash);
                }
                ProofNode::Duplicate => out.push(NODE_DUPLICATE),
            }
        }
    }

    /// Decodes the binary form. [`verify`](Self::verify) checks whether the proof holds.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let reader = &mut Reader::new(bytes);
        let flags = reader.u8("the flags of a proof")?;
        let targets = TARGET_HEADER | TARGET_MERKLE_ROOT;
        if flags & !(FULL_TRANSACTION | targets) != 0 || flags & targets == targets {
            return Err(DecodeErrorKind::UnsupportedProof { flags }.at(0));
        }
        let index = compact_size::read(reader, u64::MAX, "an index")?;
        let subject = if flags & FULL_TRANSACTION == 0 {
            Subject::Txid(Txid::from_bytes(*reader.array("a txid")?))
        } else {
            let length = compact_size::read(reader, u64::MAX, "the length of a transaction")?;
            Subject::Transaction(reader.take(length, "a transaction")?.to_vec())
        };
        let target = match flags & targets {
            TARGET_HEADER => Target::Header(*reader.array("a header")?),
            TARGET_MERKLE_ROOT => {
                Target::MerkleRoot(MerkleRoot::from_bytes(*reader.array("a merkle root")?))
            }
            _ => Target::BlockHash(BlockHash::from_bytes(*reader.array("a block hash")?)),
        };
        let count = compact_size::read(reader, MAX_NODES, "the count of nodes")?;
        let nodes = (0..count).map(|_| node(reader)).collect::<Result<_, _>>()?;
        reader.end()?;
        Ok(Self { index, subject, target, nodes })
    }

    /// Checks that the transaction is in the block with this header, and returns its txid.
    ///
    /// The header must be known to be of the chain. A caller that accepts a txid alone must also
    /// know that it is one: an inner node of the tree is the hash of 64 bytes, and so is the txid
    /// of a transaction of that length.
    pub fn verify(&self, header: Header<'_>, format: Format) -> Result<Txid, ProofError> {
        let is_target = match &self.target {
            Target::BlockHash(hash) => *hash == header.hash(),
            Target::Header(bytes) => bytes == header.bytes(),
            Target::MerkleRoot(root) => *root == header.merkle_root(),
        };
        if !is_target {
            return Err(ProofError::OtherBlock);
        }
        let txid = match &self.subject {
            Subject::Txid(txid) => *txid,
            Subject::Transaction(bytes) => Tx::parse(bytes, format)?.txid(),
        };
        let (found, expected) = (self.root(txid)?, header.merkle_root());
        if found == expected { Ok(txid) } else { Err(ProofError::OtherRoot { found, expected }) }
    }

    /// The root that this transaction and the siblings lead to.
    fn root(&self, txid: Txid) -> Result<MerkleRoot, ProofError> {
        let (mut node, mut index) = (txid.to_bytes(), self.index);
        for (level, sibling) in self.nodes.iter().enumerate() {
            let sibling = match sibling {
                ProofNode::Hash(hash) => *hash,
                ProofNode::Duplicate => node,
            };
            if sibling == node && !index.is_multiple_of(2) {
                return Err(ProofError::LeftDuplicate { level });
            }
            node = parent(node, sibling, index);
            index /= 2;
        }
        if index == 0 {
            return Ok(MerkleRoot::from_bytes(node));
        }
        Err(ProofError::IndexTooLarge { index: self.index, levels: self.nodes.len() })
    }
}

/// The node above `node`, which is at `index` of its level, and its sibling.
fn parent(node: [u8; 32], sibling: [u8; 32], index: u64) -> [u8; 32] {
    let pair = if index.is_multiple_of(2) { [node, sibling] } else { [sibling, node] };
    sha256d(pair.as_flattened())
}

fn node(reader: &mut Reader<'_>) -> Result<ProofNode, DecodeError> {
    let offset = reader.offset();
    match reader.u8("the kind of a node")? {
        NODE_HASH => Ok(ProofNode::Hash(*reader.array("a node")?)),
        NODE_DUPLICATE => Ok(ProofNode::Duplicate),
        kind => Err(DecodeErrorKind::UnknownProofNode { kind }.at(offset)),
    }
}

#[cfg(test)]
mod tests;

//! What is asked of a node: JSON-RPC calls in batches, and the REST interface where it is on.
//!
//! | question | REST | JSON-RPC |
//! |---|---|---|
//! | the tip | `/rest/chaininfo.json` | `getblockchaininfo` |
//! | is this block in the active chain? | `/rest/headers/1/HASH.bin` | `getblockheader` |
//! | headers above it | `/rest/headers/2000/HASH.bin` | `getblockhash`, `getblockheader` |
//! | blocks | `/rest/block/HASH.bin` | `getblock HASH 0`, in hex |
//!
//! Calls go in batches. A batch of blocks is sized by the last blocks, so that its answer has about
//! [`BATCH_BYTES`]; when the answer exceeds the limit, its blocks are requested one by one.
//!
//! Every request is retried until it is answered or refused, or the source ends; failures before
//! that are reported to [`Link`]. REST that a restart has turned off is not tried again.

use std::sync::Arc;
use std::time::Duration;

use hex_conservative::FromHex as _;
use serde_json::{Value, json};
use varve_types::{BlockHash, Header, Height};

use super::calls::{CallError, Calls, Login, parse};
use super::http::Answer;
use super::link::{Link, Stop};
use crate::source::HeaderBytes;

/// How long a node that does not answer is left alone.
const PAUSE: Duration = Duration::from_millis(500);
/// Headers asked for at once: by REST as many as a node gives, by calls fewer, 250 bytes each.
const REST_HEADERS: u32 = 2000;
const CALL_HEADERS: u32 = 500;
/// The text of the blocks that are asked for at once, and how many they may be.
const BATCH_BYTES: u64 = 4 << 20;
const BATCH_BLOCKS: u64 = 32;
/// What a block is long before one has come.
const FIRST_SIZE: u64 = 1 << 20;

/// The longest answer about the mempool: a million transactions, 67 bytes each, and more.
const MEMPOOL_LIMIT: u64 = 128 << 20;

/// A block of the node's active chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct At {
    pub(super) hash: BlockHash,
    /// Its height, where it is known: REST does not say it.
    pub(super) height: Option<Height>,
}

/// One thread's questions to the node.
pub(super) struct Client {
    pub(super) link: Arc<Link>,
    pub(super) calls: Calls,
    /// The length of the largest of the last blocks.
    block_size: u64,
}

impl Client {
    pub(super) fn new(link: Arc<Link>, login: Login) -> Self {
        let calls = Calls::new(Arc::clone(&link), login);
        Self { link, calls, block_size: FIRST_SIZE }
    }

    /// One whose answers may list all transactions of a mempool.
    pub(super) fn of_mempool(link: Arc<Link>, login: Login) -> Self {
        let calls = Calls::within(Arc::clone(&link), login, MEMPOOL_LIMIT);
        Self { link, calls, block_size: FIRST_SIZE }
    }

    /// Finds out whether the node answers REST, and that it is of the right network.
    pub(super) fn greet(&mut self) -> Result<(), Stop> {
        let rest = self.patiently(|client| {
            let Answer { status, body } = client.calls.get(CHAIN_INFO)?;
            Ok(status == 200 && best_block(&parse(&body)).is_some())
        })?;
        self.link.set_rest(rest);
        let genesis = self.link.network.genesis_hash();
        if self.find(&[genesis])?.is_some() {
            return Ok(());
        }
        let info = self.chain_info()?;
        let chain = info.get("chain").and_then(Value::as_str).unwrap_or_default();
        let (name, network) = (network_name(chain), self.link.network);
        if name.is_empty() || name == network.name() {
            let reason = format!("has another genesis block than {network}; choose its network");
            return Err(self.link.refused(&reason));
        }
        Err(self.link.refused(&format!(
            "this is a node of {name}, not of {network}; pass --network {name}, or the address of \
             another node"
        )))
    }

    /// The node's tip.
    pub(super) fn tip(&mut self) -> Result<At, Stop> {
        let info = self.chain_info()?;
        let height = info.get("blocks").and_then(Value::as_u64);
        let height = height.and_then(|height| u32::try_from(height).ok()).map(Height::new);
        match best_block(&info) {
            Some(hash) => Ok(At { hash, height }),
            None => Err(self.link.refused("names no best block; is this a node?")),
        }
    }

    /// The first of these blocks that is in the node's active chain.
    pub(super) fn find(&mut self, hashes: &[BlockHash]) -> Result<Option<At>, Stop> {
        self.patiently(|client| {
            if !client.link.uses_rest() {
                return client.find_by_calls(hashes);
            }
            for hash in hashes {
                if client.headers_by_rest(*hash, 1)?.is_some() {
                    return Ok(Some(At { hash: *hash, height: None }));
                }
            }
            Ok(None)
        })
    }

    /// Headers of the active chain above one of its blocks, a batch of them; `None` when that block
    /// has left it.
    pub(super) fn headers_above(
        &mut self,
        at: &At,
        tip: &At,
    ) -> Result<Option<Vec<HeaderBytes>>, Stop> {
        self.patiently(|client| {
            if client.link.uses_rest() {
                let headers = client.headers_by_rest(at.hash, REST_HEADERS)?;
                return Ok(headers.map(|headers| headers.get(1..).unwrap_or_default().to_vec()));
            }
            let known = match at.height {
                Some(height) => Some(height),
                // The node was restarted without REST.
                None => client.find_by_calls(&[at.hash])?.and_then(|at| at.height),
            };
            match (known, tip.height) {
                (Some(height), Some(tip)) if height <= tip => {
                    client.headers_by_calls(at.hash, height, tip)
                }
                _ => Ok(None),
            }
        })
    }

    /// How many blocks are asked for at once.
    pub(super) fn batch_size(&self) -> usize {
        let count = match self.link.uses_rest() {
            true => 1,
            false => (BATCH_BYTES / (2 * self.block_size.max(1))).clamp(1, BATCH_BLOCKS),
        };
        usize::try_from(count).unwrap_or(1)
    }

    /// Blocks, or `None` for each that the node does not have.
    pub(super) fn blocks(&mut self, hashes: &[BlockHash]) -> Result<Vec<Option<Vec<u8>>>, Stop> {
        let answers = self.patiently(|client| {
            if client.link.uses_rest() {
                return hashes.iter().map(|hash| client.block_by_rest(hash)).collect();
            }
            match client.blocks_by_calls(hashes) {
                Err(CallError::TooLong) if hashes.len() > 1 => {
                    let one = |hash| client.blocks_by_calls(std::slice::from_ref(hash));
                    let blocks: Result<Vec<_>, _> = hashes.iter().map(one).collect();
                    Ok(blocks?.into_iter().flatten().collect())
                }
                answer => answer,
            }
        })?;
        let largest = answers.iter().flatten().map(Vec::len).max();
        if let Some(largest) = largest {
            self.block_size = (largest as u64).max(self.block_size / 2);
        }
        for (hash, bytes) in hashes.iter().zip(&answers) {
            let header = bytes.as_ref().map(|bytes| bytes.first_chunk().map(Header::new));
            if header.is_some_and(|header| header.is_none_or(|header| header.hash() != *hash)) {
                return Err(self.link.refused(&format!("gave another block than {hash}")));
            }
        }
        Ok(answers)
    }

    fn chain_info(&mut self) -> Result<Value, Stop> {
        self.patiently(|client| {
            if client.link.uses_rest() {
                return Ok(parse(&client.calls.rest(CHAIN_INFO)?.unwrap_or_default()));
            }
            let info = client.calls.batch(&[("getblockchaininfo", json!([]))])?;
            Ok(info.into_iter().flatten().next().unwrap_or_default())
        })
    }

    fn find_by_calls(&mut self, hashes: &[BlockHash]) -> Result<Option<At>, CallError> {
        let call = |hash: &BlockHash| ("getblockheader", json!([hash.to_string(), true]));
        let calls: Vec<_> = hashes.iter().map(call).collect();
        let answers = self.calls.batch(&calls)?;
        Ok(hashes.iter().zip(&answers).find_map(|(hash, answer)| {
            let field = |name| answer.as_ref()?.get(name).and_then(Value::as_i64);
            // A block beside the active chain has −1.
            field("confirmations").filter(|count| *count > 0)?;
            let height = field("height").and_then(|height| u32::try_from(height).ok())?;
            Some(At { hash: *hash, height: Some(Height::new(height)) })
        }))
    }

    /// The headers above a block. They are asked for in two batches, so the chain may have changed
    /// in between; the links between the headers show it.
    fn headers_by_calls(
        &mut self,
        hash: BlockHash,
        height: Height,
        tip: Height,
    ) -> Result<Option<Vec<HeaderBytes>>, CallError> {
        let first = height.to_u32();
        let last = first.saturating_add(CALL_HEADERS).min(tip.to_u32());
        let calls: Vec<_> = (first..=last).map(|at| ("getblockhash", json!([at]))).collect();
        let hashes = self.calls.batch(&calls)?.into_iter().map_while(|answer| answer);
        let hashes: Vec<Value> = hashes.collect();
        if hashes.first().and_then(to_hash) != Some(hash) {
            return Ok(None);
        }
        let call = |hash: &Value| ("getblockheader", json!([hash, false]));
        let calls: Vec<_> = hashes.iter().skip(1).map(call).collect();
        if calls.is_empty() {
            return Ok(Some(Vec::new()));
        }
        let (mut headers, mut below) = (Vec::with_capacity(calls.len()), hash);
        for answer in self.calls.batch(&calls)? {
            let Some(answer) = answer else { return Ok(None) };
            let header = answer.as_str().and_then(|hex| HeaderBytes::from_hex(hex).ok());
            let header =
                header.ok_or_else(|| CallError::Refused("gave a header that is none".into()))?;
            if Header::new(&header).previous() != below {
                return Ok(None);
            }
            below = Header::new(&header).hash();
            headers.push(header);
        }
        Ok(Some(headers))
    }

    /// Headers of the active chain from a block on, that of the block first; `None` when it is not
    /// in that chain.
    fn headers_by_rest(
        &mut self,
        from: BlockHash,
        count: u32,
    ) -> Result<Option<Vec<HeaderBytes>>, CallError> {
        let bytes =
            self.calls.rest(&format!("/rest/headers/{count}/{from}.bin"))?.unwrap_or_default();
        let (headers, _) = bytes.as_chunks::<{ Header::LEN }>();
        if headers.first().is_none_or(|header| Header::new(header).hash() != from) {
            return Ok(None);
        }
        let links = headers
            .array_windows()
            .all(|[below, above]| Header::new(above).previous() == Header::new(below).hash());
        match links {
            true => Ok(Some(headers.to_vec())),
            false => Err(CallError::Refused("gave headers that do not follow one another".into())),
        }
    }

    fn block_by_rest(&mut self, hash: &BlockHash) -> Result<Option<Vec<u8>>, CallError> {
        self.calls.rest(&format!("/rest/block/{hash}.bin"))
    }

    fn blocks_by_calls(&mut self, hashes: &[BlockHash]) -> Result<Vec<Option<Vec<u8>>>, CallError> {
        let call = |hash: &BlockHash| ("getblock", json!([hash.to_string(), 0]));
        let calls: Vec<_> = hashes.iter().map(call).collect();
        let bytes = |answer: Option<Value>| {
            let Some(answer) = answer else { return Ok(None) };
            let bytes = answer.as_str().and_then(|hex| Vec::from_hex(hex).ok());
            bytes.map(Some).ok_or_else(|| CallError::Refused("gave a block that is not hex".into()))
        };
        self.calls.batch(&calls)?.into_iter().map(bytes).collect()
    }

    /// Asks until there is an answer.
    pub(super) fn patiently<T>(
        &mut self,
        mut ask: impl FnMut(&mut Self) -> Result<T, CallError>,
    ) -> Result<T, Stop> {
        loop {
            match ask(self) {
                Ok(value) => {
                    self.link.well();
                    return Ok(value);
                }
                Err(CallError::Trouble(trouble)) => {
                    self.link.trouble(&trouble)?;
                    self.link.pause(PAUSE)?;
                }
                Err(CallError::NoRest) => self.link.set_rest(false),
                Err(CallError::Stop(stop)) => return Err(stop),
                Err(CallError::Refused(reason)) => return Err(self.link.refused(&reason)),
                Err(CallError::TooLong) => {
                    let reason = "sends an answer that is longer than any block; is this a node?";
                    return Err(self.link.refused(reason));
                }
            }
        }
    }
}

const CHAIN_INFO: &str = "/rest/chaininfo.json";

fn best_block(info: &Value) -> Option<BlockHash> {
    to_hash(info.get("bestblockhash")?)
}

fn to_hash(value: &Value) -> Option<BlockHash> {
    value.as_str()?.parse().ok()
}

/// Our name of a chain that a node names.
fn network_name(chain: &str) -> &str {
    match chain {
        "main" => "mainnet",
        "test" => "testnet3",
        other => other,
    }
}

//! What can be subscribed to, and the state of it that notifications are about.
//!
//! ```text
//! subject                      state                       notification
//! the chain                    its tip                     headers.subscribe [{height, hex}]
//! a script (hash, script or    its status                  scripthash.subscribe [hash, status]
//!   address)
//! an outpoint                  who made and spent it       outpoint.subscribe [txid, n, {…}]
//! a transaction                its height                  transaction.subscribe [txid, height]
//! ```
//!
//! A state is computed from one snapshot. Two states are compared by their [`Print`].

use std::sync::Arc;

use serde::Serialize;
use serde::ser::SerializeMap as _;
use serde_json::json;
use varve::types::ScriptStatus;
use varve::{BlockHash, BlockHeader, Outpoint, ScriptHash, Snapshot, Txid};

use super::fault::Fault;
use super::statuses::Statuses;

/// What is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Subject {
    /// The tip of the chain.
    Tip,
    /// What a script was paid and has spent.
    Script(ScriptHash),
    /// An output, and the input that spends it.
    Outpoint(Outpoint),
    /// A transaction.
    Transaction(Txid),
}

/// How a client names a script; each is a separate subscription.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Naming {
    /// By its hash; also what subjects other than scripts have.
    Hash,
    /// By its bytes.
    Script,
    /// By its address.
    Address,
}

/// What a client has subscribed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Topic {
    pub(super) subject: Subject,
    pub(super) naming: Naming,
}

/// The state of a subject at one snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    Tip(Box<BlockHeader>),
    Script(Option<ScriptStatus>),
    Outpoint(OutpointStatus),
    /// 0 in the mempool; `None` when it is unknown.
    Transaction(Option<u32>),
}

/// A short form of a state: equal states have equal prints, and others differ but for one chance in
/// 2^128.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Print([u8; 16]);

/// An output and its spender. Heights are Electrum's: 0 and -1 in the mempool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct OutpointStatus {
    funder_height: Option<i64>,
    spender: Option<(Txid, i64)>,
}

impl Subject {
    /// The state at a snapshot.
    pub(super) fn state(self, snapshot: &Snapshot, statuses: &Statuses) -> Result<State, Fault> {
        Ok(match self {
            Self::Tip => State::Tip(Box::new(tip_header(snapshot)?)),
            Self::Script(hash) => State::Script(statuses.status(snapshot, hash)?),
            Self::Outpoint(outpoint) => State::Outpoint(OutpointStatus::of(snapshot, outpoint)?),
            Self::Transaction(txid) => State::Transaction(height(snapshot, txid)?),
        })
    }
}

impl State {
    pub(super) fn print(&self) -> Print {
        let half = |hash: &[u8; 32]| Print(*hash.first_chunk().expect("16 of 32 bytes"));
        match self {
            Self::Tip(header) => half(header.hash.as_bytes()),
            Self::Script(None) | Self::Transaction(None) => Print([0; 16]),
            Self::Script(Some(status)) => half(status.as_bytes()),
            Self::Transaction(Some(height)) => Print((u128::from(*height) + 1).to_le_bytes()),
            Self::Outpoint(status) => {
                let text = serde_json::to_vec(status).unwrap_or_default();
                half(ScriptHash::of(&text).as_bytes())
            }
        }
    }
}

impl Serialize for State {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Tip(header) => tip_answer(header).serialize(serializer),
            Self::Script(status) => status.map(|status| status.to_string()).serialize(serializer),
            Self::Outpoint(status) => status.serialize(serializer),
            Self::Transaction(height) => height.serialize(serializer),
        }
    }
}

impl Serialize for OutpointStatus {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if let Some(height) = self.funder_height {
            map.serialize_entry("funder_height", &height)?;
        }
        if let Some((txid, height)) = self.spender {
            map.serialize_entry("spender_txhash", &txid.to_string())?;
            map.serialize_entry("spender_height", &height)?;
        }
        map.end()
    }
}

impl OutpointStatus {
    fn of(snapshot: &Snapshot, outpoint: Outpoint) -> Result<Self, Fault> {
        let mempool = snapshot.mempool();
        let unconfirmed = mempool.as_ref().and_then(|mempool| {
            let entry = mempool.entry(&outpoint.txid)?;
            let count = entry.transaction().view().outputs().count();
            (usize::try_from(outpoint.vout).is_ok_and(|vout| vout < count)).then_some(entry)
        });
        let confirmed = snapshot.output(outpoint)?.filter(|output| output.confirmed);
        let funder_height = match (&confirmed, unconfirmed) {
            (Some(output), _) => Some(i64::from(output.height.to_u32())),
            (None, Some(entry)) => Some(i64::from(entry.electrum_height())),
            (None, None) => return Ok(Self::default()),
        };
        let mined = match confirmed {
            Some(_) => snapshot.spender(outpoint)?,
            None => None,
        };
        let spender = mined.map(|by| (by.txid, i64::from(by.height.to_u32()))).or_else(|| {
            let mempool = mempool.as_ref()?;
            let by = mempool.spender(&outpoint)?.txid;
            let height = mempool.entry(&by).map_or(0, varve::MempoolEntry::electrum_height);
            Some((by, i64::from(height)))
        });
        Ok(Self { funder_height, spender })
    }
}

/// The height of a transaction: 0 in the mempool, `None` when neither chain nor mempool has it.
pub(super) fn height(snapshot: &Snapshot, txid: Txid) -> Result<Option<u32>, Fault> {
    let confirmed = snapshot.tx(txid)?.filter(varve::Transaction::is_confirmed);
    let waiting = || snapshot.mempool().is_some_and(|mempool| mempool.contains(&txid));
    Ok(confirmed.map(|tx| tx.block.height.to_u32()).or_else(|| waiting().then_some(0)))
}

pub(super) fn tip_header(snapshot: &Snapshot) -> Result<BlockHeader, Fault> {
    let tip: BlockHash = snapshot.tip().hash;
    snapshot.header(tip)?.ok_or_else(|| Fault::bad("the tip has no header"))
}

/// Height and bytes of a header.
pub(super) fn tip_answer(header: &BlockHeader) -> serde_json::Value {
    use hex_conservative::DisplayHex as _;
    json!({"height": header.height.to_u32(), "hex": header.to_bytes().to_lower_hex_string()})
}

impl Topic {
    /// The line that reports a new state. A script is named by its hash, also where the client gave
    /// its bytes (so do ElectrumX and libbitcoin), or by the address that the client gave.
    pub(super) fn notification(&self, address: Option<&Arc<str>>, state: &State) -> Vec<u8> {
        let (method, params) = match (self.subject, self.naming) {
            (Subject::Tip, _) => ("blockchain.headers.subscribe", json!([state])),
            (Subject::Script(hash), Naming::Hash) => {
                ("blockchain.scripthash.subscribe", json!([hash.to_string(), state]))
            }
            (Subject::Script(hash), Naming::Script) => {
                ("blockchain.scriptpubkey.subscribe", json!([hash.to_string(), state]))
            }
            (Subject::Script(_), Naming::Address) => {
                ("blockchain.address.subscribe", json!([address.map(|text| &**text), state]))
            }
            (Subject::Outpoint(Outpoint { txid, vout }), _) => {
                ("blockchain.outpoint.subscribe", json!([txid.to_string(), vout, state]))
            }
            (Subject::Transaction(txid), _) => {
                ("blockchain.transaction.subscribe", json!([txid.to_string(), state]))
            }
        };
        let line = json!({"jsonrpc": "2.0", "method": method, "params": params});
        let mut line = serde_json::to_vec(&line).unwrap_or_default();
        line.push(b'\n');
        line
    }
}

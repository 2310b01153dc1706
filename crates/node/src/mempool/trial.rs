//! What would become of a transaction that came now.
//!
//! It is judged like one that comes in, on a draft that is dropped. Transactions that are tested
//! together see one another, so a chain of them can be tested before any is sent.

use bytes::Bytes;
use varve_records::Transaction;
use varve_types::{Amount, Txid, Wtxid};

use super::admission::{Admission, CoinCache, Terms, decode};
use super::chain::Moment;
use super::draft::Draft;
use super::orphanage::Orphanage;
use super::policy::Judge;
use super::pool::{Mempool, verdict};
use super::reject::{MempoolError, Reject};
use super::rules::NextBlock;

/// Whether a transaction would be taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acceptance {
    /// The transaction.
    pub txid: Txid,
    /// Its hash with witnesses.
    pub wtxid: Wtxid,
    /// Its virtual bytes and its fee; or why it would be refused.
    pub result: Result<(u64, Amount), String>,
}

impl Mempool {
    /// Judges transactions in their order, by our own rules. Nothing changes.
    pub fn test(
        &self,
        at: Moment<'_>,
        txs: &[Bytes],
    ) -> Result<Vec<Result<Acceptance, Reject>>, MempoolError> {
        let mut draft = Draft::new(&self.version);
        let (mut floor, mut orphans) = (self.floor, Orphanage::default());
        let mut admission = Admission {
            next: NextBlock::new(&self.params, at.chain)?,
            coins: CoinCache::new(at.chain),
            policy: &self.policy,
            verifier: self.verifier.as_deref(),
            floor: &mut floor,
            orphans: &mut orphans,
            now: at.now,
        };
        let format = self.params.network.format();
        let mut tested = Vec::with_capacity(txs.len());
        for bytes in txs {
            tested.push(match decode(bytes.clone(), format) {
                Ok(tx) => Ok(try_one(&mut admission, &mut draft, &tx)?),
                Err(reject) => Err(reject),
            });
        }
        Ok(tested)
    }
}

fn try_one(
    admission: &mut Admission<'_>,
    draft: &mut Draft,
    tx: &Transaction,
) -> Result<Acceptance, MempoolError> {
    let terms = Terms { judge: Judge::Ours, time: admission.now, fee_waived: false };
    let result = match verdict(admission.admit(draft, tx, terms))? {
        Ok(txid) => {
            let entry = draft.version.entry(&txid).expect("admitted just now");
            Ok((entry.vsize(), entry.fee()))
        }
        Err(reject) => Err(reject.to_string()),
    };
    Ok(Acceptance { txid: tx.txid(), wtxid: tx.view().wtxid(), result })
}

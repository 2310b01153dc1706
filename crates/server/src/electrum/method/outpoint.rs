//! Methods about outputs and who spends them.

use serde_json::json;
use varve::{Outpoint, ScriptHash};

use super::{Call, Method, Naming, Subject, Topic};
use crate::electrum::fault::Fault;
use crate::electrum::params::Params;

/// The hint at the script is for servers that cannot find an output by its outpoint alone.
const NAMES: &[&str] = &["tx_hash", "txout_idx", "spk_hint"];

pub(super) const METHODS: &[Method] = &[
    Method("blockchain.outpoint.subscribe", NAMES, |call, params| {
        let subject = Subject::Outpoint(outpoint(params)?);
        call.subscribe(Topic { subject, naming: Naming::Hash }, None)
    }),
    Method("blockchain.outpoint.get_status", NAMES, |call, params| {
        let state = call.state(Subject::Outpoint(outpoint(params)?))?;
        call.answer(&state)
    }),
    Method("blockchain.outpoint.unsubscribe", &["tx_hash", "txout_idx"], |call, params| {
        call.unsubscribe(Subject::Outpoint(outpoint(params)?), Naming::Hash)
    }),
    Method("blockchain.utxo.get_info", &["tx_hash", "out_n"], info),
];

fn outpoint(params: &Params<'_>) -> Result<Outpoint, Fault> {
    Ok(Outpoint::new(params.txid(0)?, params.number(1)?))
}

/// An unspent output (Fulcrum); null when it is spent, also by the mempool, or never was.
fn info(call: &mut Call<'_>, params: &Params<'_>) -> Result<(), Fault> {
    let outpoint = outpoint(params)?;
    let mempool = call.snapshot.mempool();
    if mempool.as_ref().is_some_and(|mempool| mempool.spender(&outpoint).is_some()) {
        return call.answer(&());
    }
    let answer = |script: &[u8], value: u64| {
        let hash = ScriptHash::of(script).to_string();
        json!({"scripthash": hash, "value": value})
    };
    let confirmed = call.snapshot.utxo(outpoint)?.map(|output| {
        let mut answer = answer(&output.script, output.value.to_sat());
        if let Some(fields) = answer.as_object_mut() {
            fields.insert("confirmed_height".to_owned(), json!(output.height.to_u32()));
        }
        answer
    });
    let waiting = || {
        let mempool = mempool.as_ref()?;
        let tx = mempool.entry(&outpoint.txid)?.transaction();
        let output = tx.view().outputs().nth(usize::try_from(outpoint.vout).ok()?)?;
        Some(answer(output.script, output.value.to_sat()))
    };
    call.answer(&confirmed.or_else(waiting))
}

//! Lines that create or spend.
//!
//! A transaction that comes without the outputs it spends gets them from the records of its
//! parents, or from its own record if it was created before. With neither, a spend is
//! `TX_NOT_FOUND`, and a creation `PROCESSING`, as for any transaction that is not in extended
//! form.

use serde_json::{Value, json};
use varve::records::CreateOptions;
use varve::records::engine::SlotView;
use varve::records::operation::{SlotRef, Spend, SpendPart, SpendRules, Unit};
use varve::records::operation::{Spent, SpentHow};
use varve::records::record::Body;
use varve::records::record::Tier;
use varve::records::record::UtxoHash;
use varve::records::{Fields, RecordError, SlotError, SpendItem, Transaction};
use varve::{Height, Outpoint, Txid};

use super::arguments::{Arguments, HEIGHT, required};
use super::failure::{Failure, place};
use super::session::Session;

/// What a unit does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnitKind {
    /// Creates a record.
    Create,
    /// Spends the inputs of a transaction.
    Spend,
    /// Both.
    SpendAndCreate,
}

/// A unit that is ready, and what its answer needs.
pub(super) struct UnitLine {
    unit: Unit,
    summary: Summary,
}

/// What the answer of a unit that succeeded needs.
pub(super) struct Summary {
    txid: Txid,
    spends: Vec<(Outpoint, u32)>,
    created: Option<Value>,
}

/// A line whose transaction is parsed, before anything is looked up for it.
pub(super) struct UnitDraft<'a> {
    kind: UnitKind,
    arguments: Arguments<'a>,
    tx: Option<Transaction>,
}

impl<'a> UnitDraft<'a> {
    /// The draft of a line.
    pub(super) fn read(
        kind: UnitKind,
        arguments: Arguments<'a>,
        session: &Session,
    ) -> Result<Self, Failure> {
        let by_slots = kind == UnitKind::Spend && !arguments.has(&["tx"]);
        let parse = || arguments.tx(session.store.settings().format);
        let tx = (!by_slots).then(parse).transpose()?;
        Ok(Self { kind, arguments, tx })
    }

    /// Whether it depends on other records, so that all lines before it must be executed first.
    pub(super) fn needs_records(&self) -> bool {
        self.tx.as_ref().is_none_or(is_bare)
    }

    /// The unit.
    pub(super) fn finish(self, session: &Session) -> Result<UnitLine, Failure> {
        let Self { kind, arguments, tx } = self;
        let Some(tx) = tx else { return UnitLine::of_slots(&arguments, session) };
        let settings = session.store.settings();
        let tx = decorate(tx, kind, session)?;
        let rules = || rules(&arguments, session);
        let options = || create_options(&arguments, session);
        let unit = match kind {
            UnitKind::Create => Unit::create(&tx, &options()?, settings)?,
            UnitKind::Spend => Unit::spend(&tx, rules()?)?,
            UnitKind::SpendAndCreate => {
                Unit::spend_and_create(&tx, rules()?, &options()?, settings)?
            }
        };
        Ok(UnitLine::new(unit))
    }
}

impl UnitLine {
    /// A spend that is given slot by slot, by one transaction.
    fn of_slots(arguments: &Arguments<'_>, session: &Session) -> Result<Self, Failure> {
        let mut spends = Vec::new();
        let mut spender = None;
        let list = arguments.objects(&["spends"])?.unwrap_or_else(|| vec![*arguments]);
        for item in list {
            let (txid, spend) = spend_of(&item, session)?;
            if *spender.get_or_insert(txid) != txid {
                let what = "one line spends for one transaction; spend_multi for many";
                return Err(Failure::argument("spending_data", what));
            }
            spends.push(spend);
        }
        let txid = required("spends", spender)?;
        Self::spending(txid, spends, rules(arguments, session)?)
    }

    /// Spends of outputs that are named with their spenders, each by itself.
    pub(super) fn of_each(
        arguments: &Arguments<'_>,
        session: &Session,
    ) -> Result<Vec<Self>, Failure> {
        let rules = rules(arguments, session)?;
        let list = required("spends", arguments.objects(&["spends"])?)?;
        let line = |item: &Arguments<'_>| {
            let (txid, spend) = spend_of(item, session)?;
            Self::spending(txid, vec![spend], rules)
        };
        list.iter().map(line).collect()
    }

    fn spending(txid: Txid, spends: Vec<Spend>, rules: SpendRules) -> Result<Self, Failure> {
        if rules.height == Height::GENESIS {
            let reason = "the height must be above 0";
            return Err(RecordError::Processing { txid, reason }.into());
        }
        let spend = Some(SpendPart { spends, rules });
        Ok(Self::new(Unit { txid, spend, create: None }))
    }

    fn new(unit: Unit) -> Self {
        let spends = unit.spend.iter().flat_map(|part| &part.spends);
        let summary = Summary {
            txid: unit.txid,
            spends: spends.map(|spend| (spend.outpoint, spend.vin)).collect(),
            created: unit.create.as_ref().map(|new| {
                json!({
                    "fee": new.fee.to_sat(),
                    "size": new.size,
                    "size_in_bytes": new.size,
                    "is_coinbase": new.is_coinbase,
                    "total_utxos": new.utxos.len(),
                })
            }),
        };
        Self { unit, summary }
    }

    /// The transactions that it is about or that it spends.
    pub(super) fn txids(&self) -> impl Iterator<Item = Txid> {
        let created = self.unit.create.iter().flat_map(|new| &new.inputs);
        let spent = self.summary.spends.iter().map(|(outpoint, _)| outpoint);
        [self.unit.txid].into_iter().chain(created.chain(spent).map(|outpoint| outpoint.txid))
    }

    /// The transaction that it is about.
    pub(super) const fn txid(&self) -> Txid {
        self.unit.txid
    }

    /// The unit, and what its answer needs.
    pub(super) fn into_parts(self) -> (Unit, Summary) {
        (self.unit, self.summary)
    }
}

impl Summary {
    /// What the answer of a transaction that spends and creates needs.
    pub(super) fn of(tx: &Transaction) -> Self {
        let spends = tx.outpoints().into_iter().zip(0..).collect();
        Self { txid: tx.txid(), spends, created: None }
    }

    /// The answer when the unit is done.
    pub(super) fn show(&self, spent: &[Spent]) -> Value {
        let mut answer = match &self.created {
            Some(Value::Object(created)) => created.clone(),
            _ => serde_json::Map::new(),
        };
        answer.insert("txid".into(), self.txid.to_string().into());
        let spends = self.spends.iter().zip(spent).map(|((outpoint, vin), spent)| {
            let mut item = place(*outpoint);
            let blocks: Value = spent.parent_blocks.iter().map(|block| block.0).collect();
            item.insert("vin".into(), (*vin).into());
            item.insert("ok".into(), true.into());
            item.insert("how".into(), how(spent.how).into());
            item.insert("block_ids".into(), blocks);
            Value::Object(item)
        });
        if !self.spends.is_empty() {
            answer.insert("spends".into(), spends.collect());
        }
        answer.into()
    }
}

const fn how(how: SpentHow) -> &'static str {
    match how {
        SpentHow::Written => "SPENT",
        SpentHow::Again => "SPENT_BEFORE",
        SpentHow::ParentGone => "PARENT_PRUNED",
    }
}

/// How spends are judged.
pub(super) fn rules(arguments: &Arguments<'_>, session: &Session) -> Result<SpendRules, Failure> {
    let flags = arguments.object(&["ignore_flags"])?.unwrap_or(*arguments);
    let flag = |name| flags.flag(&[name]).map(|flag| flag.unwrap_or(false));
    let tier = match arguments.text(&["tier"])? {
        None | Some("consensus") => Tier::Consensus,
        Some("policy") => Tier::Policy,
        Some(_) => return Err(Failure::argument("tier", "expected policy or consensus")),
    };
    Ok(SpendRules {
        height: height(arguments, session)?,
        ignore_conflicting: flag("ignore_conflicting")?,
        ignore_locked: flag("ignore_locked")?,
        tier,
    })
}

/// The options of a new record.
pub(super) fn create_options(
    arguments: &Arguments<'_>,
    session: &Session,
) -> Result<CreateOptions, Failure> {
    let flag = |name| arguments.flag(&[name]).map(|flag| flag.unwrap_or(false));
    let infos = arguments.mined_block_infos()?;
    Ok(CreateOptions {
        height: height(arguments, session)?,
        created_at: arguments.u64(&["created_at"])?.unwrap_or_else(Session::now),
        blocks: infos.into_iter().map(|info| info.block).collect(),
        is_coinbase: arguments.flag(&["is_coinbase"])?,
        frozen: flag("frozen")?,
        conflicting: flag("conflicting")?,
        locked: flag("locked")?,
    })
}

/// The height of the block that a transaction may be in; the next one by default.
fn height(arguments: &Arguments<'_>, session: &Session) -> Result<Height, Failure> {
    let next = session.store.block_state().height.to_u32().saturating_add(1);
    Ok(arguments.height(HEIGHT)?.unwrap_or(Height::new(next)))
}

/// The spender of an output, and the spend.
fn spend_of(item: &Arguments<'_>, session: &Session) -> Result<(Txid, Spend), Failure> {
    let data = required("spending_data", item.spending_data()?)?;
    let slot = slot_ref(item, session)?;
    Ok((data.txid, Spend { outpoint: slot.outpoint, hash: slot.hash, vin: data.vin }))
}

/// An output; its hash is that of the record when none is given, and when it is given with its
/// bytes in the order in which txids are written.
pub(super) fn slot_ref(arguments: &Arguments<'_>, session: &Session) -> Result<SlotRef, Failure> {
    let outpoint = arguments.outpoint()?;
    let view = session.store.engine().slots(&[outpoint])?.pop().flatten();
    let found = view.and_then(|view| view.slot).map(|slot| slot.hash);
    let given = arguments.utxo_hash(&["utxo_hash"])?;
    let hash = match (given, found) {
        (Some(given), Some(found)) if reversed(given) == found => found,
        (Some(given), _) => given,
        (None, Some(found)) => found,
        // Without a slot no hash is right, and the store reports what is missing.
        (None, None) => UtxoHash::from_bytes([0; 32]),
    };
    Ok(SlotRef { outpoint, hash })
}

fn reversed(hash: UtxoHash) -> UtxoHash {
    let mut bytes = hash.to_bytes();
    bytes.reverse();
    UtxoHash::from_bytes(bytes)
}

/// Whether it lacks the outputs that it spends.
fn is_bare(tx: &Transaction) -> bool {
    !tx.is_extended() && !tx.outpoints().is_empty()
}

/// The transaction in extended form.
fn decorate(tx: Transaction, kind: UnitKind, session: &Session) -> Result<Transaction, Failure> {
    if !is_bare(&tx) {
        return Ok(tx);
    }
    let store = &session.store;
    let found = store.previous_outputs_decorate(std::slice::from_ref(&tx))?.pop();
    if let Some(Ok(extended)) = found {
        return Ok(extended);
    }
    let own = store.batch_decorate(&[tx.txid()], Fields::TX)?.pop();
    if let Some(Ok(record)) = own
        && let Some(Body::Transaction(stored)) = record.body
        && stored.is_extended()
    {
        return Ok(stored);
    }
    if kind == UnitKind::Create {
        return Ok(tx);
    }
    let outpoints = tx.outpoints();
    let views = store.engine().slots(&outpoints)?;
    let item = |(outpoint, view): (&Outpoint, Option<SlotView>)| {
        let error = match view {
            None => Some(SlotError::TxNotFound),
            Some(view) if view.slot.is_none() => Some(SlotError::UtxoNotFound),
            Some(_) => None,
        };
        SpendItem { outpoint: *outpoint, error }
    };
    Err(RecordError::Spend(outpoints.iter().zip(views).map(item).collect()).into())
}

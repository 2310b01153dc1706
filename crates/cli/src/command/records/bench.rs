//! `varve records bench`: how fast records are created and spent.
//!
//! Made-up transactions of one input and two outputs, in pairs: a parent is created, then its
//! child spends the parent's first output and is created, in one step. Parents and children come
//! in batches, and every batch is durable before the next begins. One operation is one creation
//! or one spend, so a child counts two.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use bytes::Bytes;
use varve::records::CreateOptions;
use varve::records::Transaction;
use varve::records::operation::SpendRules;
use varve::records::store::TxUnit;
use varve::types::{Format, TxOut, compact_size};
use varve::{Amount, Height, Outpoint, Txid};
use varve_server::json;

use super::session::Session;
use crate::output::print_json;

/// The script of every output: a hash of a key would be as long.
const SCRIPT: [u8; 25] = [0x51; 25];
/// What an output of a parent is worth.
const VALUE: u64 = 10_000;

/// Runs the command.
pub(super) fn run(session: &Session, transactions: u32, batch: u32, as_json: bool) -> Result<()> {
    let height = Height::new(session.store.block_state().height.to_u32().saturating_add(1));
    let rules = SpendRules::at(height);
    let options = CreateOptions { height, created_at: Session::now(), ..CreateOptions::default() };
    let mut salt = [0; 32];
    getrandom::fill(&mut salt).ok().context("the system gives no random numbers")?;
    let (mut took, mut operations, mut done) = (Vec::new(), 0_u64, 0_u32);
    let pairs = transactions / 2;
    let started = Instant::now();
    let mut working = Duration::ZERO;
    while done < pairs {
        let numbers = done..done.saturating_add(batch).min(pairs);
        done = numbers.end;
        let parents: Vec<Transaction> = numbers.map(|n| parent(&salt, n)).collect::<Result<_>>()?;
        let children: Vec<Transaction> = parents.iter().map(child).collect::<Result<_>>()?;
        for (txs, spend) in [(&parents, None), (&children, Some(rules))] {
            let unit = |tx| TxUnit { tx, spend, create: Some(options.clone()) };
            let units: Vec<TxUnit<'_>> = txs.iter().map(unit).collect();
            let begun = Instant::now();
            let answers = session.store.spend_and_create_multi(&units)?;
            let elapsed = begun.elapsed();
            answers.into_iter().collect::<Result<Vec<_>, _>>()?;
            operations += units.len() as u64 * if spend.is_some() { 2 } else { 1 };
            working += elapsed;
            took.push(elapsed);
        }
    }
    let elapsed = started.elapsed();
    took.sort_unstable();
    let rate = per_second(operations, working);
    let (p50, p99) = (percentile(&took, 50), percentile(&took, 99));
    if as_json {
        return print_json(&json::RecordsBench {
            transactions: u64::from(pairs) * 2,
            batch,
            operations,
            operations_per_second: rate,
            batch_p50_ms: p50,
            batch_p99_ms: p99,
            seconds: elapsed.as_secs_f64(),
        });
    }
    println!("  operations  {operations} in {working:.1?}, {rate:.0} a second");
    println!("  batches     of {batch} transactions, half of them {p50:.2} ms or less,");
    println!("              99 in 100 of them {p99:.2} ms or less");
    Ok(())
}

/// A transaction that spends an output nobody knows.
fn parent(salt: &[u8; 32], number: u32) -> Result<Transaction> {
    let spent = Outpoint::new(Txid::from_bytes(*salt), number);
    extended(&spent, VALUE * 2 + 100, VALUE)
}

/// A transaction that spends the first output of another.
fn child(parent: &Transaction) -> Result<Transaction> {
    extended(&Outpoint::new(parent.txid(), 0), VALUE, VALUE / 2 - 50)
}

/// One input, two outputs, in extended form.
fn extended(spent: &Outpoint, worth: u64, each: u64) -> Result<Transaction> {
    let mut bytes = Vec::with_capacity(320);
    let output = |value| TxOut { value: Amount::from_sat(value), script: &SCRIPT };
    bytes.extend_from_slice(&2_u32.to_le_bytes());
    bytes.extend_from_slice(&[0, 0, 0, 0, 0, 0xef, 1]);
    bytes.extend_from_slice(&spent.to_bytes());
    // A signature and a key take as much.
    compact_size::write(107, &mut bytes);
    bytes.extend_from_slice(&[0x51; 107]);
    bytes.extend_from_slice(&u32::MAX.to_le_bytes());
    output(worth).write(&mut bytes);
    compact_size::write(2, &mut bytes);
    output(each).write(&mut bytes);
    output(each).write(&mut bytes);
    bytes.extend_from_slice(&0_u32.to_le_bytes());
    Ok(Transaction::parse(Bytes::from(bytes), Format::Legacy)?)
}

/// The time, in milliseconds, that this many in a hundred did not exceed.
fn percentile(sorted: &[Duration], percent: usize) -> f64 {
    let place = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(place).copied().unwrap_or_default().as_secs_f64() * 1e3
}

#[expect(clippy::cast_precision_loss, reason = "a rate that people read needs no 53rd bit")]
fn per_second(operations: u64, took: Duration) -> f64 {
    operations as f64 / took.as_secs_f64().max(1e-9)
}

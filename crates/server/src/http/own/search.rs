//! Search: what a few characters may mean, the likeliest first.
//!
//! | typed | found |
//! |---|---|
//! | a number | the block at that height, and those that begin with the digits |
//! | a date, `2024-04-20` | the first block of that day |
//! | 64 hexadecimal digits | the block, transaction or script of that hash |
//! | an address | its script |
//! | `TXID:VOUT` | the output |
//! | the first four digits of a hash, or more | what begins with them among the newest |
//!
//! Hashes are found whole by the search tables, which know nothing of beginnings. So the beginning
//! of a hash is looked for only where that is cheap, and nothing says that there is no other.

use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use varve::types::address;
use varve::{BlockHash, BlockHeader, Height, Outpoint, ScriptHash, Snapshot, Txid};

use super::Shared;
use super::reply::{Asked, Refusals, Refused, Reply, Tip};

/// Characters of a question at most.
const LONGEST: usize = 128;
/// Results at most.
const RESULTS: usize = 10;
/// Characters of a hash from which on its beginning is looked for.
const BEGINNING: usize = 4;
/// Last blocks whose hashes are compared with a beginning.
const RECENT_BLOCKS: u32 = 2_016;
/// Last blocks whose transactions are.
const RECENT_TXS: u32 = 3;
/// Transactions of a block up to which they are compared.
const MANY_TXS: u32 = 20_000;
/// Unconfirmed transactions that are compared.
const WAITING: usize = 50_000;
const DAY: i64 = 86_400;

/// What was found.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SearchAnswer {
    tip: Tip,
    results: Vec<Hit>,
}

/// Something with the name that was looked for.
#[derive(Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(super) struct Hit {
    /// `block`, `transaction`, `address`, `script` or `output`.
    kind: &'static str,
    /// Its whole name.
    label: String,
    /// What is known of it at a glance.
    detail: Option<String>,
    /// Its page in the explorer.
    path: String,
}

#[derive(Debug, Deserialize, IntoParams)]
pub(super) struct SearchQuery {
    /// What to look for, 128 characters at most.
    q: String,
}

/// What a text may name: blocks, transactions, addresses, outputs, scripts; the likeliest first.
#[utoipa::path(get, path = "/search", tag = "varve", params(SearchQuery), responses(
    (status = 200, body = SearchAnswer), Refusals))]
pub(super) async fn search(
    State(own): State<Shared>,
    Asked(SearchQuery { q }): Asked<SearchQuery>,
) -> Result<Reply<SearchAnswer>, Refused> {
    if q.len() > LONGEST {
        return Err(Refused::bad(format!("look for at most {LONGEST} characters")));
    }
    own.ask(move |_, snapshot| {
        let text = q.trim();
        let mut results = exact(snapshot, text)?;
        if results.is_empty() {
            results = beginnings(snapshot, text)?;
        }
        results.truncate(RESULTS);
        Ok(SearchAnswer { tip: snapshot.tip().into(), results })
    })
    .await
}

/// What the text names as it stands.
fn exact(snapshot: &Snapshot, text: &str) -> Result<Vec<Hit>, Refused> {
    let mut hits = Vec::new();
    if let Ok(outpoint) = text.parse::<Outpoint>() {
        hits.extend(output(snapshot, outpoint)?);
    }
    if let Ok(block) = text.parse::<BlockHash>() {
        hits.extend(snapshot.header(block)?.map(|header| block_hit(&header, false)));
        let txid = Txid::from_bytes(block.to_bytes());
        hits.extend(transaction(snapshot, txid)?);
        hits.extend(script(snapshot, ScriptHash::from_bytes(block.to_bytes())));
    }
    if let Ok(found) = address::decode(text, snapshot.network()) {
        let label = address::encode(&found, snapshot.network()).unwrap_or(text.to_owned());
        let detail = balance(snapshot, ScriptHash::of(&found)).map(|(_, detail)| detail);
        let path = format!("/address/{label}");
        hits.push(Hit { kind: "address", label, detail, path });
    }
    if let Some(day) = day(text) {
        hits.extend(first_since(snapshot, day)?.map(|header| block_hit(&header, true)));
    }
    if hits.is_empty() && text.len() <= 10 && text.bytes().all(|byte| byte.is_ascii_digit()) {
        for height in heights(text, snapshot.tip().height.to_u32()) {
            let header = snapshot.header(Height::new(height))?;
            hits.extend(header.map(|header| block_hit(&header, true)));
        }
    }
    Ok(hits)
}

/// The height that the digits are, and the smallest ones that begin with them.
fn heights(digits: &str, tip: u32) -> Vec<u32> {
    let Ok(height) = digits.parse::<u32>() else { return Vec::new() };
    let scales = std::iter::successors(Some(1_u32), |scale| scale.checked_mul(10));
    let found = scales.filter_map(|scale| height.checked_mul(scale));
    let mut found: Vec<u32> = found.filter(|height| *height <= tip).collect();
    found.dedup();
    found
}

fn block_hit(header: &BlockHeader, by_height: bool) -> Hit {
    let (height, date) = (header.height.to_u32(), date(header.time.into()));
    let stale = if header.confirmed { "" } else { ", not in the chain" };
    let hash = header.hash.to_string();
    Hit {
        kind: "block",
        label: if by_height { height.to_string() } else { hash.clone() },
        detail: Some(if by_height { date } else { format!("{height}, {date}{stale}") }),
        path: format!("/block/{hash}"),
    }
}

fn transaction(snapshot: &Snapshot, txid: Txid) -> Result<Option<Hit>, Refused> {
    let waits = snapshot.mempool().is_some_and(|mempool| mempool.contains(&txid));
    let detail = if waits {
        "unconfirmed".to_owned()
    } else {
        match snapshot.tx(txid)? {
            Some(tx) if tx.is_confirmed() => format!("in block {}", tx.block.height),
            Some(_) => "on a stale branch".to_owned(),
            None => return Ok(None),
        }
    };
    Ok(Some(tx_hit(txid, detail)))
}

fn tx_hit(txid: Txid, detail: String) -> Hit {
    let label = txid.to_string();
    let path = format!("/tx/{label}");
    Hit { kind: "transaction", label, detail: Some(detail), path }
}

/// What a script has done; `None` when nothing is known of it.
fn balance(snapshot: &Snapshot, script: ScriptHash) -> Option<(u64, String)> {
    let summary = snapshot.script(script).ok()?.summary().ok()?;
    let waits = snapshot.mempool().map_or(0, |mempool| mempool.script_delta(script).txs);
    let txs = summary.txs + waits;
    Some((txs, format!("{txs} transactions")))
}

fn script(snapshot: &Snapshot, script: ScriptHash) -> Option<Hit> {
    let (_, detail) = balance(snapshot, script).filter(|(txs, _)| *txs > 0)?;
    let label = script.to_string();
    let path = format!("/script/{label}");
    Some(Hit { kind: "script", label, detail: Some(detail), path })
}

fn output(snapshot: &Snapshot, outpoint: Outpoint) -> Result<Option<Hit>, Refused> {
    let found = snapshot.output(outpoint)?;
    Ok(found.map(|found| Hit {
        kind: "output",
        label: outpoint.to_string(),
        detail: Some(format!("{} satoshi", found.value.to_sat())),
        path: format!("/tx/{}#out-{}", outpoint.txid, outpoint.vout),
    }))
}

/// What among the newest begins with these digits.
fn beginnings(snapshot: &Snapshot, text: &str) -> Result<Vec<Hit>, Refused> {
    let text = text.to_ascii_lowercase();
    let is_hex = text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !is_hex || !(BEGINNING..64).contains(&text.len()) {
        return Ok(Vec::new());
    }
    let mut hits = Vec::new();
    let mempool = snapshot.mempool();
    let waiting = mempool.iter().flat_map(|mempool| mempool.recent(WAITING));
    let waiting = waiting.map(varve::MempoolEntry::txid).filter(|txid| begins(txid, &text));
    hits.extend(waiting.take(RESULTS).map(|txid| tx_hit(txid, "unconfirmed".to_owned())));
    let tip = snapshot.tip().height.to_u32();
    for height in (0..=tip).rev().take(RECENT_BLOCKS as usize) {
        if hits.len() >= RESULTS {
            break;
        }
        let Some(header) = snapshot.header(Height::new(height))? else { continue };
        if begins(&header.hash, &text) {
            hits.push(block_hit(&header, false));
        }
        if tip - height < RECENT_TXS {
            hits.extend(of_block(snapshot, &header, &text)?);
        }
    }
    Ok(hits)
}

fn of_block(snapshot: &Snapshot, header: &BlockHeader, text: &str) -> Result<Vec<Hit>, Refused> {
    let summary = snapshot.block_summary(header.hash)?;
    if summary.is_none_or(|summary| summary.transactions > MANY_TXS) {
        return Ok(Vec::new());
    }
    let block = match snapshot.block(header.hash) {
        Err(varve::Error::Pruned { .. }) => None,
        found => found?,
    };
    let txids = block.map(|block| block.txids).unwrap_or_default();
    let found = txids.into_iter().filter(|txid| begins(txid, text)).take(RESULTS);
    Ok(found.map(|txid| tx_hit(txid, format!("in block {}", header.height))).collect())
}

/// Whether a hash begins with these digits, as it is shown.
fn begins(hash: &impl AsShown, text: &str) -> bool {
    let shown = hash.shown();
    let digits = text.as_bytes();
    digits.iter().enumerate().all(|(at, digit)| {
        let byte = shown.get(at / 2).copied().unwrap_or_default();
        let half = if at % 2 == 0 { byte >> 4 } else { byte & 15 };
        char::from(*digit).to_digit(16) == Some(half.into())
    })
}

/// A hash in the order in which it is shown.
trait AsShown {
    fn shown(&self) -> [u8; 32];
}

impl AsShown for Txid {
    fn shown(&self) -> [u8; 32] {
        reversed(self.to_bytes())
    }
}

impl AsShown for BlockHash {
    fn shown(&self) -> [u8; 32] {
        reversed(self.to_bytes())
    }
}

fn reversed(mut bytes: [u8; 32]) -> [u8; 32] {
    bytes.reverse();
    bytes
}

/// The first block that was not before this moment by its median time, which never goes back.
fn first_since(snapshot: &Snapshot, moment: i64) -> Result<Option<BlockHeader>, Refused> {
    let (mut low, mut high) = (0, snapshot.tip().height.to_u32().saturating_add(1));
    while low < high {
        let middle = low + (high - low) / 2;
        let header = snapshot.header(Height::new(middle))?;
        let is_before = header.is_some_and(|header| i64::from(header.median_time) < moment);
        (low, high) = if is_before { (middle + 1, high) } else { (low, middle) };
    }
    Ok(snapshot.header(Height::new(low))?)
}

/// The first second of a day written `YYYY-MM-DD`, since 1970.
fn day(text: &str) -> Option<i64> {
    let mut parts = text.split('-');
    let mut part = |length: usize| {
        let part = parts.next().filter(|part| part.len() == length)?;
        part.parse::<i64>().ok().filter(|_| part.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let (year, month, day) = (part(4)?, part(2)?, part(2)?);
    let is_date = parts.next().is_none() && (1..=12).contains(&month) && (1..=31).contains(&day);
    is_date.then(|| days(year, month, day) * DAY)
}

/// Days from 1970-01-01 to a date: years begin in March, so that the leap day is the last.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The date of a second since 1970.
fn date(second: i64) -> String {
    let days = second.div_euclid(DAY) + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, late) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    format!("{:04}-{month:02}-{day:02}", year + era * 400 + late)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_go_both_ways() {
        for (text, second) in [
            ("1970-01-01", 0),
            ("2009-01-03", 1_230_940_800),
            ("2024-02-29", 1_709_164_800),
            ("2024-04-20", 1_713_571_200),
            ("2000-03-01", 951_868_800),
        ] {
            assert_eq!((day(text), date(second).as_str()), (Some(second), text));
            assert_eq!(date(second + DAY - 1), text);
        }
        for none in ["2024-4-20", "2024-13-01", "20240420", "2024-04-20-", "+024-04-20", ""] {
            assert_eq!(day(none), None, "{none}");
        }
    }

    #[test]
    fn digits_are_a_height_and_the_beginning_of_others() {
        assert_eq!(heights("84", 9_000), [84, 840, 8_400]);
        assert_eq!(heights("0", 9_000), [0]);
        assert!(heights("9001", 9_000).is_empty());
        assert!(heights("99999999999", u32::MAX).is_empty());
    }

    #[test]
    fn a_hash_begins_as_it_is_shown() {
        let mut bytes = [0; 32];
        bytes[31] = 0xab;
        bytes[30] = 0xcd;
        let txid = Txid::from_bytes(bytes);
        assert!(txid.to_string().starts_with("abcd"));
        assert!(begins(&txid, "abcd") && begins(&txid, "abc") && !begins(&txid, "abce"));
    }
}

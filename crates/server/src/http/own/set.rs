//! The set of unspent outputs: its figures now, and at heights before.
//!
//! Figures come from the rows of the index `stats`, one read each. Without them the number of
//! outputs is all that can be said without a walk over the whole set.

use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use varve::{Height, SetStats, Snapshot, shown_hash};

use super::Shared;
use super::reply::{Asked, Refusals, Refused, Reply, Tip};

/// Points of a series at most.
const POINTS: u32 = 1_000;

/// The set in figures.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SetAnswer {
    tip: Tip,
    txouts: u64,
    /// What they are worth; `null` while the tip is not counted.
    total_amount: Option<u64>,
    /// Core's measure of their size.
    bogosize: Option<u64>,
    /// The hash of the set, as Core's `gettxoutsetinfo muhash` shows it.
    muhash: Option<String>,
    /// The height up to which the figures are counted; `null` when nothing is.
    counted_to: Option<u32>,
    points: Vec<SetPoint>,
}

/// The set at a height.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SetPoint {
    height: u32,
    time: u32,
    txouts: u64,
    total_amount: u64,
    bogosize: u64,
}

#[derive(Debug, Deserialize, IntoParams)]
pub(super) struct SetQuery {
    /// Heights at equal distances between `from` and `to`; 0 by default, 1,000 at most.
    points: Option<u32>,
    /// The first height of the series; genesis by default.
    from: Option<u32>,
    /// The last height of the series; the tip by default.
    to: Option<u32>,
}

/// The unspent set now, and over time.
#[utoipa::path(get, path = "/set", tag = "varve", params(SetQuery), responses(
    (status = 200, body = SetAnswer), Refusals))]
pub(super) async fn set(
    State(own): State<Shared>,
    Asked(asked): Asked<SetQuery>,
) -> Result<Reply<SetAnswer>, Refused> {
    own.ask(move |_, snapshot| {
        let tip = snapshot.tip();
        let counted = snapshot.set_rows(&[tip.height])?.counted;
        let last = counted.map_or(0, Height::to_u32).min(asked.to.unwrap_or(u32::MAX));
        let count = asked.points.unwrap_or_default().min(POINTS);
        let mut heights = spread(asked.from.unwrap_or_default(), last, count);
        heights.push(tip.height);
        let mut rows = snapshot.set_rows(&heights)?.rows;
        let now = rows.pop_if(|row| row.height == tip.height);
        Ok(SetAnswer {
            tip: tip.into(),
            txouts: match &now {
                Some(row) => row.txouts,
                None => snapshot.unspent()?.coin_count(),
            },
            total_amount: now.as_ref().map(|row| row.total_amount),
            bogosize: now.as_ref().map(|row| row.bogosize),
            muhash: now.as_ref().map(|row| shown_hash(row.muhash())),
            counted_to: counted.map(Height::to_u32),
            points: rows.iter().map(|row| point(snapshot, row)).collect::<Result<_, _>>()?,
        })
    })
    .await
}

/// Heights at about equal distances, the first and the last among them.
fn spread(first: u32, last: u32, count: u32) -> Vec<Height> {
    if count == 0 || first > last {
        return Vec::new();
    }
    let (steps, length) = (u64::from(count.max(2) - 1), u64::from(last - first));
    let at = |step: u64| u64::from(first) + length * step / steps;
    let mut heights: Vec<u64> = (0..=steps).map(at).collect();
    heights.dedup();
    heights.into_iter().filter_map(|at| u32::try_from(at).ok()).map(Height::new).collect()
}

fn point(snapshot: &Snapshot, row: &SetStats) -> Result<SetPoint, Refused> {
    let time = snapshot.header(row.height)?.map_or(0, |header| header.time);
    let (txouts, total_amount, bogosize) = (row.txouts, row.total_amount, row.bogosize);
    Ok(SetPoint { height: row.height.to_u32(), time, txouts, total_amount, bogosize })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heights_are_spread_from_the_first_to_the_last() {
        let heights = |first, last, count| -> Vec<u32> {
            spread(first, last, count).into_iter().map(Height::to_u32).collect()
        };
        assert_eq!(heights(0, 100, 5), [0, 25, 50, 75, 100]);
        assert_eq!(heights(0, 2, 10), [0, 1, 2]);
        assert_eq!(heights(7, 7, 3), [7]);
        assert_eq!(heights(0, u32::MAX, 2), [0, u32::MAX]);
        assert!(heights(8, 7, 3).is_empty() && heights(0, 9, 0).is_empty());
    }
}

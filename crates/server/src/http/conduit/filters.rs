//! Tip filters: a reference server registers what its accounts want to know of, and gets it sent.
//!
//! A filter is a pushdata hash of an account, for 5 minutes to 7 days. It counts from the time that
//! the client says.

use axum::body::Bytes;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode};
use serde::{Deserialize, Serialize};
use std::sync::{MutexGuard, PoisonError};
use utoipa::ToSchema;

use super::super::answer::{Answer, Cache, Refusal};
use super::super::api::Shared;
use super::super::esplora::Refusals;
use super::sent;
use super::state::{Filters, NotNow};

/// How long a filter may last, in seconds.
const SHORTEST: u32 = 5 * 60;
const LONGEST: u32 = 7 * 24 * 60 * 60;

/// Whose filters are registered, and since when.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct RegisterQuery {
    /// The account.
    account_id: i64,
    /// When the filters were made, in seconds since 1970.
    #[param(minimum = 0)]
    date_created: u64,
}

/// Whose filters are removed.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct DeleteQuery {
    /// The account.
    account_id: i64,
}

/// What was registered.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = conduit::Registered)]
#[serde(rename_all = "camelCase")]
pub(super) struct Registered {
    /// When, as ISO 8601 writes it.
    date_created: String,
}

/// Watches for pushed items on behalf of an account.
#[utoipa::path(post, path = "/api/v1/transaction/filter", tag = "Conduit", params(RegisterQuery),
    request_body(content((Vec<(String, u32)> = "application/json"),
        (Vec<u8> = "application/octet-stream"))),
    responses((status = 200, body = Registered), Refusals))]
pub(super) async fn register(
    State(api): State<Shared>,
    Query(query): Query<RegisterQuery>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Answer, Refusal> {
    let entries = sent(&headers, &body)?.filters()?;
    for (_, seconds) in &entries {
        if *seconds < SHORTEST {
            let text = format!(
                "An entry has a duration of {seconds} which is lower than the minimum value \
                 {SHORTEST}"
            );
            return Err(Refusal::bad(text));
        }
        if *seconds > LONGEST {
            let text = format!(
                "An entry has a duration of {seconds} which is higher than the maximum value \
                 {LONGEST}"
            );
            return Err(Refusal::bad(text));
        }
    }
    let created = query.date_created;
    let date = iso_8601(created).ok_or_else(|| Refusal::bad("`date_created` is not a date"))?;
    kept_by(&api)?;
    let shared = Shared::clone(&api);
    let tip = api.service.tip();
    let add = move || lock(&shared).register(query.account_id, created, &entries, tip);
    api.service.act(add).await.map_err(refused)?;
    Ok(Answer::json(&Registered { date_created: date }).cached(Cache::Never))
}

/// Watches for pushed items no longer.
#[utoipa::path(post, path = "/api/v1/transaction/filter:delete", tag = "Conduit",
    params(DeleteQuery),
    request_body(content((Vec<String> = "application/json"),
        (Vec<u8> = "application/octet-stream"))),
    responses((status = 200, description = "They are not watched for."), Refusals))]
pub(super) async fn delete(
    State(api): State<Shared>,
    Query(query): Query<DeleteQuery>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<StatusCode, Refusal> {
    let hashes = sent(&headers, &body)?.hashes()?;
    let shared = Shared::clone(&api);
    let remove = move || lock(&shared).delete(query.account_id, &hashes);
    api.service.act(remove).await.map_err(refused)?;
    Ok(StatusCode::OK)
}

pub(super) fn lock(api: &Shared) -> MutexGuard<'_, Filters> {
    api.conduit.filters.lock().unwrap_or_else(PoisonError::into_inner)
}

fn refused(error: NotNow) -> Refusal {
    match error {
        NotNow::Client(text) => Refusal::bad(text),
        NotNow::Full(text) => Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, text),
        NotNow::Disk(error) => Refusal::internal(&error),
    }
}

/// Refuses when the node could not see what a filter watches for.
fn kept_by(api: &Shared) -> Result<(), Refusal> {
    match api.service.node.snapshot().pushdata_rule()? {
        Some(_) => Ok(()),
        None => Err(Refusal::unavailable("this node keeps no index `pushdata`")),
    }
}

/// A time as ISO 8601 writes it, without a zone: it is UTC. `None` behind the year 9999.
fn iso_8601(seconds: u64) -> Option<String> {
    let (days, second) = (i64::try_from(seconds / 86_400).ok()?, seconds % 86_400);
    // Howard Hinnant's civil_from_days: years begin in March, so the leap day is the last.
    let shifted = days + 719_468;
    let (era, day) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    (year <= 9_999)
        .then(|| format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_as_python_writes_them() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00"),
            (951_782_400, "2000-02-29T00:00:00"),
            (1_652_860_799, "2022-05-18T07:59:59"),
            (4_107_542_399, "2100-02-28T23:59:59"),
            (4_107_542_400, "2100-03-01T00:00:00"),
            (253_402_300_799, "9999-12-31T23:59:59"),
        ] {
            assert_eq!(iso_8601(seconds).as_deref(), Some(text));
        }
        assert_eq!(iso_8601(253_402_300_800), None);
        assert_eq!(iso_8601(u64::MAX), None);
    }
}

//! What every request passes before its route, and every answer after it.
//!
//! - The path may be long, encoded or odd only as far as a route could mean it: see [`check_path`].
//! - A request that is not answered in time is refused; the thread that works on it goes on, and
//!   its turn with it.
//! - Every page may read answers (`access-control-allow-origin: *`), and none may send anything:
//!   a preflight allows `GET` alone.

use std::net::IpAddr;
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use tokio::time::timeout;

use super::answer::Refusal;
use super::api::Shared;
use crate::metrics::Protocol;

/// Bytes of a path and query that are looked at.
const LONGEST_URI: usize = 8_192;

/// Lets a request through to its route, and finishes the answer.
pub(super) async fn guard(State(api): State<Shared>, request: Request, next: Next) -> Response {
    let (begin, route) = (Instant::now(), request.extensions().get::<MatchedPath>().cloned());
    let response = answer(&api, request, next).await;
    let route = route.as_ref().map_or("unknown", MatchedPath::as_str);
    api.service.metrics().request(Protocol::Http, route, begin.elapsed());
    response
}

async fn answer(api: &Shared, request: Request, next: Next) -> Response {
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    if *request.method() == Method::OPTIONS {
        return preflight();
    }
    let known = request.headers().get(header::IF_NONE_MATCH).cloned();
    let checked = check_path(request.uri()).and_then(|()| check_length(api, request.headers()));
    let mut response = match checked {
        Err(refusal) => refusal.into_response(),
        Ok(()) => match timeout(api.limits.request_time, next.run(request)).await {
            Ok(response) => response,
            Err(_) => {
                let text = "the answer takes too long; ask for less";
                Refusal::unavailable(text).into_response()
            }
        },
    };
    if is_read {
        let headers = response.headers_mut();
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
        headers.insert(
            header::ACCESS_CONTROL_EXPOSE_HEADERS,
            HeaderValue::from_static(super::answer::TIP_HEADER),
        );
        if known.is_some_and(|known| is_known(&known, response.headers())) {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            *response.body_mut() = axum::body::Body::empty();
        }
    }
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// Refuses a body that says itself that it is longer than any route takes, before it is sent. One
/// that does not say so is refused by its route when it is too long.
fn check_length(api: &Shared, headers: &HeaderMap) -> Result<(), Refusal> {
    let length = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok());
    let length: u64 = length.and_then(|length| length.parse().ok()).unwrap_or_default();
    let most = api.limits.body_bytes.max(api.limits.tx_bytes);
    if usize::try_from(length).is_ok_and(|length| length <= most) {
        return Ok(());
    }
    let text = format!("the body is too long: at most {most} bytes");
    Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, text))
}

/// Where a request came from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer(pub(super) IpAddr);

/// Lets a request through that changes something: it comes from this machine, or has the token.
pub(super) async fn trusted(State(api): State<Shared>, request: Request, next: Next) -> Response {
    let peer = request.extensions().get::<Peer>().map(|peer| peer.0.to_canonical());
    let is_near = peer.is_some_and(|peer| peer.is_loopback());
    if is_near || has_token(&api, request.headers()) {
        return next.run(request).await;
    }
    let text = "from another machine this takes the server's token: Authorization: Bearer TOKEN";
    Refusal::new(StatusCode::FORBIDDEN, text).into_response()
}

/// Whether a request has the token of the server, if it has one.
fn has_token(api: &Shared, headers: &HeaderMap) -> bool {
    let given = headers.get(header::AUTHORIZATION).and_then(|given| given.to_str().ok());
    let given = given.and_then(|given| given.strip_prefix("Bearer "));
    api.token.as_ref().zip(given).is_some_and(|(token, given)| token.is(given))
}

/// Whether the client has this answer already.
fn is_known(known: &HeaderValue, headers: &HeaderMap) -> bool {
    let etag = headers.get(header::ETAG).and_then(|etag| etag.to_str().ok());
    let known = known.to_str().unwrap_or_default();
    etag.is_some_and(|etag| known.split(',').any(|one| one.trim() == etag))
}

/// Which requests of pages from elsewhere are allowed.
fn preflight() -> Response {
    let headers = [
        (header::ACCESS_CONTROL_ALLOW_ORIGIN, "*"),
        (header::ACCESS_CONTROL_ALLOW_METHODS, "GET, HEAD, OPTIONS"),
        (header::ALLOW, "GET, HEAD, POST, OPTIONS"),
    ];
    (StatusCode::NO_CONTENT, headers).into_response()
}

/// No route has this path.
pub(super) async fn unknown(uri: Uri) -> Refusal {
    Refusal::not_found(format!("endpoint does not exist {:?}", uri.path()))
}

/// Refuses a path that no route means: too long, not UTF-8, with control characters, backslashes,
/// empty segments, or segments that climb. It is looked at as it reads when decoded, so that what
/// is refused plainly is not let in encoded.
fn check_path(uri: &Uri) -> Result<(), Refusal> {
    let refused = |text: &str| Err(Refusal::bad(text));
    let length = uri.path_and_query().map_or(0, |path| path.as_str().len());
    if length > LONGEST_URI {
        return Err(Refusal::new(StatusCode::URI_TOO_LONG, "the address is too long"));
    }
    let Some(path) = decoded(uri.path()) else {
        return refused("the path is not UTF-8");
    };
    if path.chars().any(|char| char.is_control() || char == '\\') {
        return refused("the path has a character that no endpoint has");
    }
    let segments = path.strip_prefix('/').unwrap_or(&path);
    let segments = segments.strip_suffix('/').unwrap_or(segments);
    let is_odd = |segment: &str| matches!(segment, "" | "." | "..");
    if path != "/" && segments.split('/').any(is_odd) {
        return refused("the path has an empty or a climbing segment");
    }
    Ok(())
}

/// A path without percent signs; `None` when it is not UTF-8 then, or a percent sign has no digits.
fn decoded(path: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(rest.next()?).to_digit(16);
        bytes.push(u8::try_from(digit()? * 16 + digit()?).ok()?);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_no_route_means() {
        for path in [
            "/api//tx",
            "//",
            "/api/../etc",
            "/api/%2e%2e/etc",
            "/api/%2E/tx",
            "/api/tx%2f%2ftx",
            "/api/tx/%00",
            "/api/tx/a%5cb",
            "/api/tx/%ff%fe",
            "/api/tx/%zz",
            "/api/tx/%",
        ] {
            assert!(check_path(&path.parse().unwrap()).is_err(), "{path}");
        }
        let long = format!("/api/tx/{}", "a".repeat(LONGEST_URI));
        assert!(check_path(&long.parse().unwrap()).is_err());
    }

    #[test]
    fn paths_that_routes_have() {
        for path in [
            "/",
            "/api/blocks/tip/hash",
            "/api/blocks/",
            "/api/v1/transaction/filter:delete?account_id=1",
            "/api/v1/output-spend/notifications%3Aunregister",
            "/api/address/bcrt1q.x",
        ] {
            assert!(check_path(&path.parse().unwrap()).is_ok(), "{path}");
        }
    }
}

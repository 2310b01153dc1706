//! What all endpoints take and give (OpenAPI), and a page to try them.
//!
//! The document is made of the routes themselves, so it has what the server has.

use axum::http::{Response, header};
use axum::response::IntoResponse as _;
use axum::routing::get;
use axum::{Router, body::Body};
use utoipa::openapi::{InfoBuilder, OpenApi};
use utoipa_axum::router::OpenApiRouter;

use super::answer::{Answer, Cache, JSON};
use super::api::Shared;

/// Without anything from elsewhere: styles and scripts are in the page.
const PAGE: &str = include_str!("openapi/page.html");

/// Routes, and the document that describes them.
pub(super) fn described(routes: OpenApiRouter<Shared>) -> (Router<Shared>, OpenApi) {
    let (routes, mut document) = routes.split_for_parts();
    document.info = InfoBuilder::new()
        .title("Varve")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(
            "A chain database over HTTP. Every answer is read at one tip, which its header \
             x-varve-tip names as HEIGHT:HASH.",
        ))
        .build();
    (routes, document)
}

/// The routes of the document and of the page.
pub(super) fn router(document: &OpenApi) -> Router<Shared> {
    let document = serde_json::to_string(document).unwrap_or_default();
    let serve = move || {
        let document = document.clone();
        async move { Answer::stream(JSON, Body::from(document)).cached(Cache::Seconds(60)) }
    };
    Router::new().route("/api/openapi.json", get(serve)).route("/api/docs", get(page))
}

async fn page() -> axum::response::Response {
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
             connect-src 'self'; base-uri 'none'; form-action 'none'",
        ),
    ];
    (headers, Response::new(Body::from(PAGE))).into_response()
}

//! `/metrics`: what Prometheus reads.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};

use super::answer::Refusal;
use super::api::Shared;
use crate::metrics::render;

/// The text format of Prometheus, in its version.
const KIND: &str = "text/plain; version=0.0.4; charset=utf-8";

pub(super) async fn metrics(State(api): State<Shared>) -> Response {
    let service = Arc::clone(&api.service);
    match api.service.act(move || render(&service)).await {
        Ok(text) => ([(CONTENT_TYPE, KIND)], text).into_response(),
        Err(error) => Refusal::internal(&error).into_response(),
    }
}

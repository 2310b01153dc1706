//! What clients of `varve serve` may take.

use std::time::Duration;

use varve_server::electrum::Limits;
use varve_server::http::HttpLimits;

use super::value::size;

/// Bounds on clients. Those that are not given have the servers' defaults.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Limits")]
pub(crate) struct LimitOptions {
    /// Connections by HTTP at a time [default: 2048]
    #[arg(long, value_name = "COUNT")]
    pub http_connections: Option<usize>,

    /// Requests by HTTP of one address in a minute, this machine's aside [default: 6000]
    #[arg(long, value_name = "COUNT")]
    pub http_requests_per_minute: Option<u32>,

    /// Bytes of the body of a request by HTTP [default: 1M]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub http_body: Option<u64>,

    /// Seconds that an answer by HTTP may take [default: 60]
    #[arg(long, value_name = "SECONDS")]
    pub http_time: Option<u64>,

    /// Connections by Electrum at a time [default: 20000]
    #[arg(long, value_name = "COUNT")]
    pub electrum_connections: Option<usize>,

    /// Requests in a batch by Electrum [default: 10000]
    #[arg(long, value_name = "COUNT")]
    pub electrum_batch: Option<usize>,

    /// Bytes of a line by Electrum [default: 5000000]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub electrum_request: Option<u64>,

    /// Bytes of an answer by Electrum, a batch being one [default: 16M]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub electrum_response: Option<u64>,

    /// Subscriptions of one connection by Electrum [default: 50000]
    #[arg(long, value_name = "COUNT")]
    pub electrum_subscriptions: Option<usize>,

    /// Seconds that a client by Electrum may be silent [default: 600]
    #[arg(long, value_name = "SECONDS")]
    pub electrum_idle: Option<u64>,

    /// Connections of one address at a time, for each protocol [default: 512 by HTTP, 1000 by
    /// Electrum]
    #[arg(long, value_name = "COUNT")]
    pub connections_per_address: Option<usize>,
}

impl LimitOptions {
    /// The limits by HTTP.
    pub(crate) fn http(&self) -> HttpLimits {
        let standard = HttpLimits::default();
        HttpLimits {
            connections: self.http_connections.unwrap_or(standard.connections),
            connections_per_address: self
                .connections_per_address
                .unwrap_or(standard.connections_per_address),
            requests_per_minute: self
                .http_requests_per_minute
                .unwrap_or(standard.requests_per_minute),
            body_bytes: self.http_body.map_or(standard.body_bytes, bytes),
            request_time: self.http_time.map_or(standard.request_time, Duration::from_secs),
            ..standard
        }
    }

    /// The limits by Electrum.
    pub(crate) fn electrum(&self) -> Limits {
        let standard = Limits::default();
        Limits {
            connections: self.electrum_connections.unwrap_or(standard.connections),
            connections_per_address: self
                .connections_per_address
                .unwrap_or(standard.connections_per_address),
            batch: self.electrum_batch.unwrap_or(standard.batch),
            request: self.electrum_request.map_or(standard.request, bytes),
            response: self.electrum_response.map_or(standard.response, bytes),
            subscriptions: self.electrum_subscriptions.unwrap_or(standard.subscriptions),
            idle: self.electrum_idle.map_or(standard.idle, Duration::from_secs),
            ..standard
        }
    }
}

fn bytes(size: u64) -> usize {
    usize::try_from(size).unwrap_or(usize::MAX)
}

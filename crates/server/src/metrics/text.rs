//! The text that Prometheus reads: `# HELP`, `# TYPE`, then a line a value.

use std::fmt::{Display, Write as _};
use std::fs;
use std::path::Path;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use varve::Error;

use super::{BUCKETS, Latency, Metrics, Protocol};
use crate::service::Service;
use crate::sync_state::SyncPhase;

/// Bytes of a page of memory, as `/proc` counts them on the machines that Varve runs on.
const PAGE: u64 = 4_096;

/// Everything that is known of a service. Reads the sizes of the folder's files.
pub(crate) fn render(service: &Service) -> Result<String, Error> {
    let mut text = Text(String::with_capacity(16 << 10));
    let seconds = service.uptime().as_secs_f64();
    text.gauge("varve_uptime_seconds", "Time since the servers started.", seconds);
    text.family("varve_build_info", "gauge", "The version, as a label.");
    text.value("varve_build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1);
    if let Some(pages) = resident_pages() {
        let name = "process_resident_memory_bytes";
        text.gauge(name, "Resident memory, mapped files among it.", pages * PAGE);
    }
    chain(&mut text, service)?;
    mempool(&mut text, service);
    service.metrics().counted(&mut text);
    Ok(text.0)
}

fn chain(text: &mut Text, service: &Service) -> Result<(), Error> {
    let status = service.node.status()?;
    let report = service.sync_state().report();
    let height = status.tip.height.to_u32();
    text.gauge("varve_tip_height", "Height of the confirmed tip.", height);
    text.gauge("varve_header_height", "Height of the best header.", status.headers.to_u32());
    text.family("varve_sync_state", "gauge", "1 for the phase that the sync is in.");
    for phase in SyncPhase::ALL {
        let is_now = u8::from(phase == report.phase);
        text.value("varve_sync_state", &[("state", phase.name())], is_now);
    }
    let branches = status.chain_tips.iter().filter(|tip| tip.branch_length > 0).count();
    text.gauge("varve_branches", "Branches beside the confirmed chain.", branches);
    text.gauge("varve_invalid_blocks", "Blocks that were refused.", status.invalid.len());
    let stores = &status.stores;
    text.gauge("varve_blocks", "Stored blocks, on every branch.", stores.blocks);
    text.gauge("varve_transactions", "Transactions of stored blocks.", stores.transactions);
    text.gauge("varve_unspent_outputs", "Unspent outputs.", stores.coins);
    text.gauge("varve_unspent_runs", "Sorted files of the unspent set.", stores.runs);
    text.counter("varve_commits_total", "Commits of the folder.", stores.commits);
    text.family("varve_index_height", "gauge", "How far an optional index goes.");
    for index in &status.indexes {
        if let Some(height) = index.height {
            text.value("varve_index_height", &[("index", index.index.name())], height.to_u32());
        }
    }
    let snapshots = service.node.live_snapshots();
    text.gauge("varve_snapshots", "Snapshots that are held.", snapshots.count);
    let help = "Age of the oldest snapshot that is held.";
    text.gauge("varve_oldest_snapshot_seconds", help, snapshots.oldest.as_secs_f64());
    text.family("varve_store_bytes", "gauge", "Bytes of the files of a store.");
    for (store, bytes) in store_bytes(service.node.path()) {
        text.value("varve_store_bytes", &[("store", &store)], bytes);
    }
    Ok(())
}

fn mempool(text: &mut Text, service: &Service) {
    let totals = service.node.snapshot().mempool().map(|mempool| mempool.totals());
    let (sum, memory) = totals.map(|totals| (totals.sum, totals.memory)).unwrap_or_default();
    text.gauge("varve_mempool_transactions", "Unconfirmed transactions.", sum.count);
    text.gauge("varve_mempool_vbytes", "Their virtual bytes.", sum.vsize);
    text.gauge("varve_mempool_fees_sat", "Their fees.", sum.fees.to_sat());
    text.gauge("varve_mempool_memory_bytes", "The memory that they take.", memory);
}

impl Metrics {
    fn counted(&self, text: &mut Text) {
        let by_protocol = |text: &mut Text, name: &str, value: &dyn Fn(Protocol) -> String| {
            for protocol in Protocol::ALL {
                text.value(name, &[("protocol", protocol.name())], value(protocol));
            }
        };
        let name = "varve_connections";
        text.family(name, "gauge", "Open connections.");
        by_protocol(text, name, &|protocol| {
            self.connections(protocol).open.load(Ordering::Relaxed).to_string()
        });
        let name = "varve_connections_accepted_total";
        text.family(name, "counter", "Connections that were accepted.");
        by_protocol(text, name, &|protocol| {
            self.connections(protocol).accepted.load(Ordering::Relaxed).to_string()
        });
        let name = "varve_connections_refused_total";
        text.family(name, "counter", "Connections beyond the limits.");
        by_protocol(text, name, &|protocol| {
            self.connections(protocol).refused.load(Ordering::Relaxed).to_string()
        });
        let name = "varve_slow_clients_dropped_total";
        text.family(name, "counter", "Clients that did not read, or were too slow.");
        by_protocol(text, name, &|protocol| {
            self.connections(protocol).dropped.load(Ordering::Relaxed).to_string()
        });
        let name = "varve_request_seconds";
        text.family(name, "histogram", "Time to answer a request.");
        for protocol in Protocol::ALL {
            let methods = self.methods(protocol).read().unwrap_or_else(PoisonError::into_inner);
            for (method, latency) in &*methods {
                text.histogram(name, [("protocol", protocol.name()), ("method", method)], latency);
            }
        }
    }
}

struct Text(String);

impl Text {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a String does not fail.
        let _ = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn value(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        let labels: Vec<String> =
            labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        let _ = match labels.is_empty() {
            true => writeln!(self.0, "{name} {value}"),
            false => writeln!(self.0, "{name}{{{}}} {value}", labels.join(",")),
        };
    }

    fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.family(name, "gauge", help);
        self.value(name, &[], value);
    }

    fn counter(&mut self, name: &str, help: &str, value: impl Display) {
        self.family(name, "counter", help);
        self.value(name, &[], value);
    }

    fn histogram(&mut self, name: &str, labels: [(&str, &str); 2], latency: &Latency) {
        let mut sum = 0;
        let [protocol, method] = labels;
        let bucket = format!("{name}_bucket");
        let ends = BUCKETS.iter().map(|end| seconds(*end)).chain(["+Inf".to_owned()]);
        for (end, count) in ends.zip(&latency.counts) {
            sum += count.load(Ordering::Relaxed);
            self.value(&bucket, &[protocol, method, ("le", &end)], sum);
        }
        let total = seconds(latency.microseconds.load(Ordering::Relaxed));
        self.value(&format!("{name}_sum"), &labels, total);
        self.value(&format!("{name}_count"), &labels, sum);
    }
}

/// Microseconds as seconds, exactly.
fn seconds(microseconds: u64) -> String {
    let text = format!("{}.{:06}", microseconds / 1_000_000, microseconds % 1_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A label's value as the format wants it.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// The bytes of each folder in the data directory.
fn store_bytes(folder: &Path) -> Vec<(String, u64)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let mut stores: Vec<(String, u64)> = folders
        .map(|entry| (entry.file_name().to_string_lossy().into_owned(), bytes(&entry.path(), 0)))
        .collect();
    stores.sort();
    stores
}

/// The bytes of the files in a folder. A store has folders within folders, but not many.
fn bytes(folder: &Path, depth: u8) -> u64 {
    const DEEPEST: u8 = 4;
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let sizes = entries.map(|entry| match entry.metadata() {
        Ok(found) if found.is_file() => found.len(),
        Ok(found) if found.is_dir() && depth < DEEPEST => bytes(&entry.path(), depth + 1),
        _ => 0,
    });
    sizes.sum()
}

fn resident_pages() -> Option<u64> {
    let statm = fs::read_to_string("/proc/self/statm").ok()?;
    statm.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;

    #[test]
    fn seconds_are_exact_and_labels_are_escaped() {
        assert_eq!(seconds(100), "0.0001");
        assert_eq!(seconds(30_000_000), "30");
        assert_eq!(seconds(0), "0");
        assert_eq!(escaped("a\"b\\c\nd"), r#"a\"b\\c\nd"#);
    }

    #[test]
    fn a_histogram_adds_up() {
        let metrics = Arc::new(Metrics::default());
        for took in [50, 600, 40_000_000] {
            metrics.request(Protocol::Electrum, "server.ping", Duration::from_micros(took));
        }
        let _open = metrics.connected(Protocol::Electrum);
        let mut text = Text(String::new());
        metrics.counted(&mut text);
        let has = |line: &str| assert!(text.0.lines().any(|l| l == line), "{line}\n{}", text.0);
        let labels = r#"protocol="electrum",method="server.ping""#;
        has(&format!(r#"varve_request_seconds_bucket{{{labels},le="0.0001"}} 1"#));
        has(&format!(r#"varve_request_seconds_bucket{{{labels},le="0.001"}} 2"#));
        has(&format!(r#"varve_request_seconds_bucket{{{labels},le="+Inf"}} 3"#));
        has(&format!("varve_request_seconds_count{{{labels}}} 3"));
        has(&format!("varve_request_seconds_sum{{{labels}}} 40.00065"));
        has(r#"varve_connections{protocol="electrum"} 1"#);
        has(r#"varve_connections{protocol="http"} 0"#);
    }
}

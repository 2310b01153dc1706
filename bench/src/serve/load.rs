//! The generator: lines out, lines in, as fast as the server answers.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

/// How requests are sent.
pub(super) struct Shape {
    connections: usize,
    /// Lines that are on their way on a connection at the same time.
    depth: usize,
}

/// Several wallets at once.
pub(super) const MIX: Shape = Shape { connections: 8, depth: 16 };
/// One wallet.
pub(super) const ONE: Shape = Shape { connections: 1, depth: 4 };

/// What was measured.
pub(super) struct Load {
    pub(super) seconds: f64,
    /// Lines a second.
    pub(super) rate: f64,
    /// Megabytes of answers a second.
    pub(super) megabytes: f64,
}

/// Sends all lines once, and waits for all answers; an error among them fails the run.
pub(super) fn run(address: SocketAddr, lines: &[Vec<u8>], shape: &Shape) -> Result<Load> {
    let share = lines.len().div_ceil(shape.connections).max(1);
    let begun = Instant::now();
    let bytes = thread::scope(|scope| {
        let parts: Vec<_> = lines
            .chunks(share)
            .map(|part| scope.spawn(move || connection(address, part, shape.depth)))
            .collect();
        parts.into_iter().map(|part| part.join().unwrap_or_else(|_| Ok(0))).sum::<Result<usize>>()
    })?;
    let seconds = begun.elapsed().as_secs_f64();
    let (rate, megabytes) = (lines.len() as f64 / seconds, bytes as f64 / seconds / 1e6);
    Ok(Load { seconds, rate, megabytes })
}

fn connection(address: SocketAddr, lines: &[Vec<u8>], depth: usize) -> Result<usize> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(Duration::from_secs(120)))?;
    let version = br#"{"id":0,"method":"server.version","params":["bench","1.4"]}"#;
    let mut buffer = vec![0; 1 << 18];
    exchange(&mut stream, &[version.to_vec()], &mut buffer)?;
    let mut bytes = 0;
    for part in lines.chunks(depth) {
        bytes += exchange(&mut stream, part, &mut buffer)?;
    }
    Ok(bytes)
}

/// Sends lines together and reads as many. Returns the bytes of the answers.
fn exchange(stream: &mut TcpStream, lines: &[Vec<u8>], buffer: &mut [u8]) -> Result<usize> {
    let parts = lines.iter().flat_map(|line| [line.as_slice(), b"\n".as_slice()]);
    stream.write_all(&parts.collect::<Vec<_>>().concat())?;
    let (mut left, mut bytes) = (lines.len(), 0);
    let mut seen = Vec::new();
    while left > 0 {
        let count = stream.read(buffer).context("the server answers")?;
        ensure!(count > 0, "the server has hung up");
        let new = buffer.get(..count).unwrap_or_default();
        left = left.saturating_sub(new.iter().filter(|byte| **byte == b'\n').count());
        seen.extend_from_slice(new);
        bytes += count;
    }
    let text = String::from_utf8_lossy(&seen);
    let fault = text.find("\"error\"");
    ensure!(
        fault.is_none(),
        "{}",
        text.chars().skip(fault.unwrap_or(0)).take(300).collect::<String>()
    );
    Ok(bytes)
}

/// Requests of one kind over HTTP.
pub(super) struct HttpLoad {
    /// Requests a second.
    pub(super) rate: f64,
    /// Milliseconds that all but one in a hundred take at most.
    pub(super) p99: f64,
}

/// Gets all paths over connections that stay open, one request on each at a time.
pub(super) fn get(address: SocketAddr, paths: &[String], connections: usize) -> Result<HttpLoad> {
    let share = paths.len().div_ceil(connections).max(1);
    let begun = Instant::now();
    let times = thread::scope(|scope| {
        let parts: Vec<_> =
            paths.chunks(share).map(|part| scope.spawn(move || get_all(address, part))).collect();
        let times = parts.into_iter().map(|part| part.join().unwrap_or_else(|_| Ok(Vec::new())));
        times.collect::<Result<Vec<_>>>()
    })?;
    let rate = paths.len() as f64 / begun.elapsed().as_secs_f64();
    let mut times: Vec<f64> = times.concat();
    times.sort_by(f64::total_cmp);
    let p99 = times.get(times.len() * 99 / 100).copied().context("some requests")?;
    Ok(HttpLoad { rate, p99 })
}

fn get_all(address: SocketAddr, paths: &[String]) -> Result<Vec<f64>> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let mut buffer = Vec::new();
    let mut times = Vec::with_capacity(paths.len());
    for path in paths {
        let begun = Instant::now();
        stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: bench\r\n\r\n").as_bytes())?;
        buffer.clear();
        read_response(&mut stream, &mut buffer)?;
        times.push(begun.elapsed().as_secs_f64() * 1e3);
        let ok = buffer.starts_with(b"HTTP/1.1 200");
        ensure!(ok, "{}", String::from_utf8_lossy(buffer.get(..200).unwrap_or(&buffer)));
    }
    Ok(times)
}

/// Reads a response whose head names its length.
fn read_response(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Result<()> {
    let mut part = [0; 16 << 10];
    loop {
        let count = stream.read(&mut part)?;
        ensure!(count > 0, "the server has hung up");
        buffer.extend_from_slice(part.get(..count).unwrap_or_default());
        let head = buffer.windows(4).position(|end| end == b"\r\n\r\n");
        let Some(head) = head else { continue };
        let text = String::from_utf8_lossy(buffer.get(..head).unwrap_or_default()).to_lowercase();
        let length = text.lines().find_map(|line| line.strip_prefix("content-length:"));
        let length: usize = length.context("a response names its length")?.trim().parse()?;
        if buffer.len() >= head + 4 + length {
            return Ok(());
        }
    }
}

//! A clock that can be stopped, and that detects disturbances while it runs.
//!
//! It counts wall time, processor time of the process and of this thread, the time that this thread
//! waited for a processor, the bytes that the process read from and wrote to the disk, and what the
//! whole machine did (`/proc/stat`). From that:
//!
//! - **Background work while the clock is stopped** (compaction threads) is processor time of the
//!   process less that of this thread. It is added to the time, so that it is not free.
//! - **Others** is what the processors did in the meantime for other processes, stolen time
//!   included. Above a tenth of all processors' time, the measurement counts as disturbed.
//!
//! A clock watches its own process, or a child that has not been waited for.

use std::fs;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// The share of all processors' time that others may have.
const DISTURBED: f64 = 0.10;
/// What `/proc/stat` counts in.
const TICKS_A_SECOND: f64 = 100.0;

/// A reading of all counters.
#[derive(Clone, Copy, Debug)]
struct Mark {
    wall: Instant,
    process: Duration,
    thread: Duration,
    machine: Machine,
    io: Io,
}

impl Mark {
    /// Of this process, or of a child.
    fn now(child: Option<u32>) -> Self {
        let (process, thread, io) = match child {
            None => (cpu(ClockId::ProcessCPUTime), cpu(ClockId::ThreadCPUTime), "/proc/self/io"),
            Some(child) => (process(child).cpu, Duration::ZERO, &*format!("/proc/{child}/io")),
        };
        let io = Io::parse(&read(io));
        let machine = Machine::parse(&read("/proc/stat"));
        Self { wall: Instant::now(), process, thread, machine, io }
    }
}

/// What was measured while the clock ran.
#[derive(Clone, Copy, Debug, Default)]
pub struct Measured {
    /// Wall seconds, without background work while the clock was stopped.
    pub wall: f64,
    /// Processor seconds of the whole process.
    pub cpu: f64,
    /// Processor seconds of background threads while the clock was stopped.
    pub background: f64,
    /// Processor seconds of other processes.
    others: f64,
    processors: f64,
    /// Bytes written to the disk.
    pub written: u64,
    /// Bytes read from the disk.
    pub read: u64,
}

impl Measured {
    /// The time that counts.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.wall + self.background
    }

    /// The share of all processors' time that others had.
    #[must_use]
    pub fn others(&self) -> f64 {
        self.others / (self.wall * self.processors).max(1e-9)
    }

    /// Whether others had too large a share for the figures to count.
    #[must_use]
    pub fn is_disturbed(&self) -> bool {
        self.others() > DISTURBED
    }
}

/// The clock. It is stopped at first.
#[derive(Debug)]
pub struct Clock {
    child: Option<u32>,
    measured: Measured,
    mark: Mark,
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock {
    /// A clock of this process.
    #[must_use]
    pub fn new() -> Self {
        Self::of(None)
    }

    /// A clock of a child, by its process number.
    #[must_use]
    pub fn of_child(child: u32) -> Self {
        Self::of(Some(child))
    }

    fn of(child: Option<u32>) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from) as f64;
        let measured = Measured { processors, ..Measured::default() };
        Self { child, measured, mark: Mark::now(child) }
    }

    /// Counts the background work since the last stop, and starts.
    pub fn start(&mut self) {
        let now = Mark::now(self.child);
        let own = now.thread - self.mark.thread;
        let all = now.process.saturating_sub(self.mark.process);
        self.measured.background += all.saturating_sub(own).as_secs_f64();
        // Background writes while the clock is stopped count as well.
        self.measured.written += now.io.written.saturating_sub(self.mark.io.written);
        self.mark = now;
    }

    /// Counts what happened since the start, and stops.
    pub fn stop(&mut self) {
        let now = Mark::now(self.child);
        let cpu = now.process.saturating_sub(self.mark.process).as_secs_f64();
        let busy = now.machine.busy - self.mark.machine.busy;
        let measured = &mut self.measured;
        measured.wall += (now.wall - self.mark.wall).as_secs_f64();
        measured.cpu += cpu;
        measured.others += busy / TICKS_A_SECOND - cpu;
        measured.written += now.io.written.saturating_sub(self.mark.io.written);
        measured.read += now.io.read.saturating_sub(self.mark.io.read);
        self.mark = now;
    }

    /// What was measured so far.
    #[must_use]
    pub const fn measured(&self) -> Measured {
        self.measured
    }
}

fn cpu(clock: ClockId) -> Duration {
    Duration::try_from(clock_gettime(clock)).unwrap_or_default()
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// Whether a child has ended. It must not have been waited for.
#[must_use]
pub fn has_ended(child: u32) -> bool {
    process(child).ended
}

/// A process by its number.
fn process(number: u32) -> Process {
    Process::parse(&read(&format!("/proc/{number}/stat")))
}

/// The counters of another process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Process {
    ended: bool,
    cpu: Duration,
}

impl Process {
    /// `number (name) state …`, with the ticks in and below the system as fields 14 and 15.
    fn parse(stat: &str) -> Self {
        let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
        let ended = matches!(fields.split_whitespace().next(), None | Some("Z" | "X"));
        let times = fields.split_whitespace().skip(11).take(2);
        let ticks: f64 = times.filter_map(|ticks| ticks.parse::<f64>().ok()).sum();
        Self { ended, cpu: Duration::from_secs_f64(ticks / TICKS_A_SECOND) }
    }
}

/// What all processors together did, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Machine {
    busy: f64,
}

impl Machine {
    /// `cpu user nice system idle iowait irq softirq steal …`
    fn parse(stat: &str) -> Self {
        let line = stat.lines().next().unwrap_or_default();
        let fields: Vec<f64> =
            line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let idle: f64 = fields.iter().skip(3).take(2).sum();
        let all: f64 = fields.iter().take(8).sum();
        Self { busy: all - idle }
    }
}

/// The disk transfers of the process, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Io {
    read: u64,
    written: u64,
}

impl Io {
    fn parse(io: &str) -> Self {
        let field = |name: &str| {
            let line = io.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|rest| rest.trim().parse().ok()).unwrap_or_default()
        };
        Self { read: field("read_bytes:"), written: field("write_bytes:") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machines_counters_are_read() {
        let stat = "cpu  10 1 5 1000 50 0 2 3 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n";
        assert_eq!(Machine::parse(stat), Machine { busy: 21.0 });
        assert_eq!(Machine::parse(""), Machine::default());
        let io = "rchar: 7\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 1\n";
        assert_eq!(Io::parse(io), Io { read: 4096, written: 8192 });
        assert_eq!(Io::parse("nonsense"), Io::default());
    }

    #[test]
    fn another_process_is_read() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 1 2 3 4 150 50 0 0 20 0 9 0";
        let cpu = Duration::from_secs(2);
        assert_eq!(Process::parse(stat), Process { ended: false, cpu });
        let zombie = stat.replace(" S ", " Z ");
        assert_eq!(Process::parse(&zombie), Process { ended: true, cpu });
        assert_eq!(Process::parse(""), Process { ended: true, cpu: Duration::ZERO });
        assert!(!has_ended(std::process::id()));
    }

    #[test]
    fn only_running_time_counts() {
        let mut clock = Clock::new();
        std::thread::sleep(Duration::from_millis(30));
        let begin = Instant::now();
        clock.start();
        std::thread::sleep(Duration::from_millis(5));
        clock.stop();
        let most = begin.elapsed().as_secs_f64();
        std::thread::sleep(Duration::from_millis(30));
        let measured = clock.measured();
        assert!((0.005..=most).contains(&measured.wall), "{measured:?}, {most}");
    }
}

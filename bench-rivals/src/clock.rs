//! A clock that can be stopped, and knows what happened while it ran.
//!
//! It counts time by the wall, processor time of the process and of this thread, the time that this
//! thread waited for a processor, the bytes that the process had the disk read and write, and what
//! the whole machine did (`/proc/stat`). From that:
//!
//! - **Background work while the clock stands** (compaction threads) is processor time of the
//!   process less that of this thread. It is added to the time: nobody gets it for nothing.
//! - **Others** is what the processors did in the meantime for anybody else, stolen time included.
//!   Above a tenth of all processors' time, the measurement counts as disturbed.

use std::fs;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// The share of all processors' time that others may have.
const DISTURBED: f64 = 0.10;
/// What `/proc/stat` counts in.
const TICKS_A_SECOND: f64 = 100.0;

/// Where all counters stand.
#[derive(Clone, Copy, Debug)]
struct Mark {
    wall: Instant,
    process: Duration,
    thread: Duration,
    machine: Machine,
    io: Io,
}

impl Mark {
    fn now() -> Self {
        Self {
            wall: Instant::now(),
            process: cpu(ClockId::ProcessCPUTime),
            thread: cpu(ClockId::ThreadCPUTime),
            machine: Machine::parse(&read("/proc/stat")),
            io: Io::parse(&read("/proc/self/io")),
        }
    }
}

/// What was measured while the clock ran.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Measured {
    /// By the wall, without what the background did while the clock stood.
    pub(crate) wall: f64,
    /// Processor seconds of the whole process.
    pub(crate) cpu: f64,
    /// Processor seconds of background threads while the clock stood.
    pub(crate) background: f64,
    /// Processor seconds of anybody else.
    others: f64,
    processors: f64,
    /// Bytes that went to the disk.
    pub(crate) written: u64,
    /// Bytes that came from the disk.
    pub(crate) read: u64,
}

impl Measured {
    /// The time that counts.
    pub(crate) fn seconds(&self) -> f64 {
        self.wall + self.background
    }

    /// What part of all processors' time others had.
    pub(crate) fn others(&self) -> f64 {
        self.others / (self.wall * self.processors).max(1e-9)
    }

    pub(crate) fn is_disturbed(&self) -> bool {
        self.others() > DISTURBED
    }
}

/// The clock. It stands at first.
#[derive(Debug)]
pub(crate) struct Clock {
    measured: Measured,
    mark: Mark,
}

impl Clock {
    pub(crate) fn new() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from) as f64;
        let measured = Measured { processors, ..Measured::default() };
        Self { measured, mark: Mark::now() }
    }

    /// Counts what the background did, and runs.
    pub(crate) fn start(&mut self) {
        let now = Mark::now();
        let own = now.thread - self.mark.thread;
        let all = now.process - self.mark.process;
        self.measured.background += all.saturating_sub(own).as_secs_f64();
        // What is written behind our back while the clock stands was written for us all the same.
        self.measured.written += now.io.written - self.mark.io.written;
        self.mark = now;
    }

    /// Counts what happened, and stands.
    pub(crate) fn stop(&mut self) {
        let now = Mark::now();
        let cpu = (now.process - self.mark.process).as_secs_f64();
        let busy = now.machine.busy - self.mark.machine.busy;
        let measured = &mut self.measured;
        measured.wall += (now.wall - self.mark.wall).as_secs_f64();
        measured.cpu += cpu;
        measured.others += busy / TICKS_A_SECOND - cpu;
        measured.written += now.io.written - self.mark.io.written;
        measured.read += now.io.read - self.mark.io.read;
        self.mark = now;
    }

    pub(crate) const fn measured(&self) -> Measured {
        self.measured
    }
}

fn cpu(clock: ClockId) -> Duration {
    Duration::try_from(clock_gettime(clock)).unwrap_or_default()
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
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

/// What the process had the disk do, in bytes.
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
    fn only_running_time_counts() {
        let mut clock = Clock::new();
        std::thread::sleep(Duration::from_millis(30));
        clock.start();
        std::thread::sleep(Duration::from_millis(5));
        clock.stop();
        let measured = clock.measured();
        assert!((0.005..0.03).contains(&measured.wall), "{measured:?}");
    }
}

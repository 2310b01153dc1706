//! Which calls fail, and how.

use std::io;

use super::random::Random;

/// What a rule watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// A file opened or created.
    Open,
    /// A step of a read.
    Read,
    /// A step of a write.
    Write,
    /// A file cut or extended.
    Truncate,
    /// A file's data synced.
    Sync,
    /// A file renamed.
    Rename,
    /// A file removed.
    Remove,
    /// A directory synced.
    SyncDir,
}

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The device fails (`EIO`). A write gets some of its bytes out first; after a failed sync
    /// nothing that was waiting for it is ever guaranteed.
    Io,
    /// The disk is full (`ENOSPC`). A write gets some of its bytes out first.
    NoSpace,
    /// A read or write moves fewer bytes than asked, which is not an error.
    Short,
    /// A read or write is interrupted by a signal, which is not an error.
    Interrupted,
    /// One bit of what a read returns is wrong.
    BitFlip,
}

impl Fault {
    pub(super) fn error(self) -> io::Error {
        match self {
            Self::NoSpace => io::ErrorKind::StorageFull.into(),
            Self::Interrupted => io::ErrorKind::Interrupted.into(),
            Self::Io | Self::Short | Self::BitFlip => io::Error::from_raw_os_error(libc::EIO),
        }
    }
}

/// When a rule strikes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Once, at the matching call with this number, counted from 0 since the rule was added.
    Nth(usize),
    /// At random (by the storage's seed), in one of this many matching calls.
    OneIn(usize),
}

/// A fault and the calls it strikes.
#[derive(Debug, Clone)]
pub struct FaultRule {
    /// The calls watched.
    pub operation: Operation,
    /// Only files whose path contains this; empty for all.
    pub path_contains: String,
    /// Which of them fail.
    pub when: When,
    /// How.
    pub fault: Fault,
}

impl FaultRule {
    /// A rule for all files.
    #[must_use]
    pub const fn new(operation: Operation, when: When, fault: Fault) -> Self {
        Self { operation, path_contains: String::new(), when, fault }
    }
}

/// The rules in force.
#[derive(Debug, Default)]
pub(super) struct FaultPlan {
    rules: Vec<(FaultRule, usize)>,
}

impl FaultPlan {
    pub(super) fn add(&mut self, rule: FaultRule) {
        self.rules.push((rule, 0));
    }

    /// Counts a call and returns the fault of the first rule that strikes it.
    pub(super) fn next(
        &mut self,
        operation: Operation,
        path: &str,
        random: &mut Random,
    ) -> Option<Fault> {
        let mut struck = None;
        for (rule, seen) in &mut self.rules {
            if rule.operation != operation || !path.contains(&rule.path_contains) {
                continue;
            }
            let strikes = match rule.when {
                When::Nth(nth) => *seen == nth,
                When::OneIn(count) => random.one_in(count),
            };
            *seen += 1;
            if strikes && struck.is_none() {
                struck = Some(rule.fault);
            }
        }
        struck
    }
}

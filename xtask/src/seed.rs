//! The seed from which proptest draws its cases.
//!
//! `cargo xtask test` uses the same seed every time: a failure is repeated by running it again, and
//! a change never fails because of a case that was not drawn before. New cases are drawn by `cargo
//! xtask soak`, which draws a seed and prints it. `PROPTEST_RNG_SEED` in the environment overrides
//! both; that is how a soak is repeated.
//!
//! A seed chooses new cases only. Those that failed once are kept in `proptest-regressions` and run
//! before the new ones, with any seed.

use std::ffi::OsString;
use std::hash::{BuildHasher as _, RandomState};
use std::process::Command;

/// The variable that proptest reads.
const VARIABLE: &str = "PROPTEST_RNG_SEED";
/// The seed of `cargo xtask test`. Any number would do.
const FIXED: u64 = 20_090_103;

/// A seed for the commands that run tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seed(OsString);

impl Seed {
    /// The seed of `cargo xtask test`.
    pub(crate) fn fixed() -> Self {
        Self::given(std::env::var_os(VARIABLE), FIXED)
    }

    /// A new seed.
    pub(crate) fn random() -> Self {
        Self::given(std::env::var_os(VARIABLE), RandomState::new().hash_one(VARIABLE))
    }

    /// What the environment says, else `otherwise`.
    fn given(environment: Option<OsString>, otherwise: u64) -> Self {
        Self(environment.unwrap_or_else(|| otherwise.to_string().into()))
    }

    /// Makes the tests that `command` runs draw from this seed.
    pub(crate) fn pass_to(&self, command: &mut Command) {
        command.env(VARIABLE, &self.0);
    }

    /// The seed as it is written before a command.
    pub(crate) fn assignment(&self) -> String {
        format!("{VARIABLE}={}", self.0.display())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_wins() {
        assert_eq!(Seed::given(Some("7".into()), 3), Seed("7".into()));
        assert_eq!(Seed::given(None, 3).assignment(), "PROPTEST_RNG_SEED=3");
    }

    #[test]
    fn the_variable_reaches_the_command() {
        let mut command = Command::new("sh");
        Seed::given(None, 3).pass_to(&mut command);
        let printed = crate::run::output(command.args(["-c", "echo $PROPTEST_RNG_SEED"]));
        assert_eq!(printed.unwrap(), "3\n");
    }
}

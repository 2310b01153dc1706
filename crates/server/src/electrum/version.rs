//! Versions of the protocol and their negotiation.

use std::fmt;
use std::str::FromStr;

/// A version of the protocol, as `1.4.2`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Version([u8; 3]);

/// A text that is no version.
#[derive(Debug)]
pub(super) struct NotAVersion;

impl Version {
    pub(super) const V1_4: Self = Self([1, 4, 0]);
    pub(super) const V1_6: Self = Self([1, 6, 0]);
    pub(super) const V1_7: Self = Self([1, 7, 0]);
    /// The versions that are spoken. There never was a 1.5.
    const SPOKEN: [Self; 6] =
        [Self::V1_4, Self([1, 4, 1]), Self([1, 4, 2]), Self([1, 4, 3]), Self::V1_6, Self::V1_7];
    /// The lowest and the highest of them.
    pub(super) const RANGE: (Self, Self) = (Self::V1_4, Self::V1_7);

    /// The highest version that both sides speak.
    pub(super) fn common(lowest: Self, highest: Self) -> Option<Self> {
        Self::SPOKEN.into_iter().rfind(|version| (lowest..=highest).contains(version))
    }
}

impl FromStr for Version {
    type Err = NotAVersion;

    fn from_str(text: &str) -> Result<Self, NotAVersion> {
        let mut version = [0; 3];
        let mut parts = text.split('.');
        for place in &mut version {
            let Some(part) = parts.next() else { break };
            *place = part.parse().map_err(|_| NotAVersion)?;
        }
        // Parts behind the third, and a fourth of any kind, name versions that nobody speaks.
        if parts.next().is_some() { Err(NotAVersion) } else { Ok(Self(version)) }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self([major, minor, patch]) = self;
        write!(f, "{major}.{minor}")?;
        if *patch == 0 { Ok(()) } else { write!(f, ".{patch}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_that_both_speak() {
        let common = |low: &str, high: &str| {
            let common = Version::common(low.parse().unwrap(), high.parse().unwrap());
            common.map(|version| version.to_string())
        };
        assert_eq!(common("1.4", "1.4").as_deref(), Some("1.4"));
        assert_eq!(common("1.2", "1.4.2").as_deref(), Some("1.4.2"));
        assert_eq!(common("1.4", "1.5").as_deref(), Some("1.4.3"), "there never was a 1.5");
        assert_eq!(common("1.4", "1.6").as_deref(), Some("1.6"));
        assert_eq!(common("1.4", "9.9").as_deref(), Some("1.7"));
        assert_eq!(common("1.1", "1.3"), None);
        assert_eq!(common("1.8", "2"), None);
        assert_eq!(common("1.6", "1.4"), None);
        for wrong in ["", "x", "1.-4", "1.4.2.1", "1.400"] {
            assert!(wrong.parse::<Version>().is_err(), "{wrong}");
        }
    }
}

//! How values of options are read: sizes, heights, limits.

use varve::{AssumeValid, BlockHash, Height, Prune};

/// The most transactions on a page.
const LIMIT_MAX: usize = 10_000;

pub(super) fn limit(text: &str) -> Result<usize, String> {
    let limit = text.parse().ok().filter(|limit| (1..=LIMIT_MAX).contains(limit));
    limit.ok_or_else(|| format!("write a number from 1 to {LIMIT_MAX}"))
}

pub(super) fn height(text: &str) -> Result<Height, std::num::ParseIntError> {
    text.parse().map(Height::new)
}

pub(super) fn assume_valid(text: &str) -> Result<AssumeValid, String> {
    match text.parse() {
        _ if text == "0" => Ok(AssumeValid::Off),
        Ok(BlockHash::ZERO) => Ok(AssumeValid::Off),
        Ok(hash) => Ok(AssumeValid::Block(hash)),
        Err(_) => Err("write a block hash of 64 digits, or 0 to check all scripts".to_owned()),
    }
}

/// A number of bytes: `4096`, `512M`, `2G`, `2GiB`.
pub(super) fn size(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|letter: char| !letter.is_ascii_digit());
    let unit = text.get(digits.len()..).unwrap_or_default().to_ascii_lowercase();
    let shift = match unit.trim_end_matches("ib").trim_end_matches('b') {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        "t" => 40,
        _ => return Err("write a number of bytes, or one with K, M or G: 512M".to_owned()),
    };
    let number = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(1 << shift));
    number.ok_or_else(|| "write a number of bytes, or one with K, M or G: 512M".to_owned())
}

/// A budget of memory, which is not zero.
pub(super) fn memory(text: &str) -> Result<u64, String> {
    match size(text)? {
        0 => Err("write a size above 0, such as 512M, or leave it out".into()),
        bytes => Ok(bytes),
    }
}

/// How much of the blocks to keep.
pub(super) fn prune(text: &str) -> Result<Prune, String> {
    match text {
        "off" => Ok(Prune::Off),
        _ => size(text).map(Prune::To),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        let sizes = ["0", "4096", "3k", "512M", "2G", "2GiB", "1gb", "1T"].map(size);
        let bytes = [0, 4096, 3 << 10, 512 << 20, 2 << 30, 2 << 30, 1 << 30, 1 << 40];
        assert_eq!(sizes, bytes.map(Ok));
        for wrong in ["", "M", "1.5G", "-1", "99999999999G", "1X", "1 G"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn assumed_blocks() {
        let hash: BlockHash = "1f".repeat(32).parse().unwrap();
        assert_eq!(assume_valid(&"1f".repeat(32)), Ok(AssumeValid::Block(hash)));
        assert_eq!(assume_valid("0"), Ok(AssumeValid::Off));
        assert_eq!(assume_valid(&"0".repeat(64)), Ok(AssumeValid::Off));
        for wrong in ["", "00", "1", "off", &"f".repeat(63)] {
            assert!(assume_valid(wrong).is_err(), "{wrong}");
        }
    }
}

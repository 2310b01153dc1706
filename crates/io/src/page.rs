//! A page: 4 KiB with a checksum that knows where the page belongs.
//!
//! ```text
//!  0                                                          4092    4096
//!  ┌──────────────────────────────────────────────────────────┬───────┐
//!  │ payload                                                  │ crc   │
//!  │ 4092 bytes                                               │ u32   │
//!  └──────────────────────────────────────────────────────────┴───────┘
//! ```
//!
//! crc = CRC32C(file id 16 ‖ page number u64 ‖ payload). A page of another file, or one that the
//! disk wrote to the wrong place, does not verify, and neither does a page of zeroes.

use crate::buffer::BLOCK;
use crate::checksum::Checksum;
use crate::error::FormatError;
use crate::fields::{put, u32_at};
use crate::offset::FileOffset;

/// The length of a page.
pub const PAGE_LEN: usize = BLOCK;
/// The part of a page that its owner fills.
pub const PAGE_PAYLOAD_LEN: usize = PAGE_LEN - size_of::<u32>();
const CRC_AT: usize = PAGE_PAYLOAD_LEN;
const _: () = assert!(PAGE_LEN == 4096 && PAGE_PAYLOAD_LEN == 4092);

/// Which file pages belong to: different for every file of every store. The caller draws or derives
/// it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileId(pub [u8; 16]);

/// Which page of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageNumber(pub u64);

impl PageNumber {
    /// Where the page lies in its file.
    #[must_use]
    pub const fn offset(self) -> FileOffset {
        FileOffset::new(self.0.saturating_mul(PAGE_LEN as u64))
    }
}

/// Puts the checksum into a page whose payload is complete.
///
/// ```
/// use varve_io::{FileId, PAGE_LEN, PageNumber, seal_page, verify_page};
/// let (file, number) = (FileId([1; 16]), PageNumber(42));
/// let mut page = [0; PAGE_LEN];
/// page[..5].copy_from_slice(b"hello");
/// seal_page(&mut page, file, number);
/// assert_eq!(&verify_page(&page, file, number).expect("sealed above")[..5], b"hello");
/// assert!(verify_page(&page, file, PageNumber(43)).is_err(), "it belongs elsewhere");
/// ```
pub fn seal_page(page: &mut [u8; PAGE_LEN], file: FileId, number: PageNumber) {
    let crc = crc(page, file, number);
    put(page, CRC_AT, &crc.to_le_bytes());
}

/// Checks the page at the start of `bytes` and returns its payload.
pub fn verify_page(bytes: &[u8], file: FileId, number: PageNumber) -> Result<&[u8], FormatError> {
    if bytes.len() < PAGE_LEN {
        return Err(FormatError::damaged(bytes.len(), "the page is cut short"));
    }
    if u32_at(bytes, CRC_AT) != crc(bytes, file, number) {
        return Err(FormatError::damaged(0, "the page's checksum is wrong"));
    }
    Ok(bytes.get(..PAGE_PAYLOAD_LEN).unwrap_or_default())
}

fn crc(bytes: &[u8], file: FileId, number: PageNumber) -> u32 {
    let payload = bytes.get(..PAGE_PAYLOAD_LEN).unwrap_or_default();
    Checksum::new().with(&file.0).with_u64(number.0).with(payload).get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flipped_bit_of_a_page_is_noticed() {
        let (file, number) = (FileId([3; 16]), PageNumber(9));
        let mut page = [0xee; PAGE_LEN];
        seal_page(&mut page, file, number);
        assert!(verify_page(&page, file, number).is_ok());
        for byte in 0..PAGE_LEN {
            let bit = 1 << (byte % 8);
            page[byte] ^= bit;
            assert!(verify_page(&page, file, number).is_err(), "byte {byte}");
            page[byte] ^= bit;
        }
    }

    #[test]
    fn a_page_of_another_place_or_file_or_of_zeroes_is_refused() {
        let mut page = [1; PAGE_LEN];
        seal_page(&mut page, FileId([3; 16]), PageNumber(9));
        assert!(verify_page(&page, FileId([3; 16]), PageNumber(8)).is_err());
        assert!(verify_page(&page, FileId([4; 16]), PageNumber(9)).is_err());
        assert!(verify_page(&[0; PAGE_LEN], FileId([0; 16]), PageNumber(0)).is_err());
        assert!(verify_page(&page[..4095], FileId([3; 16]), PageNumber(9)).is_err());
    }
}

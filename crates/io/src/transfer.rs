//! Reading and writing to the last byte.
//!
//! The system may move fewer bytes than asked for, or be interrupted by a signal. Disk and test
//! storage both run these two loops over their own "move some bytes" step, so the short reads
//! that tests inject exercise the code that production runs.

use std::io;
use std::path::Path;

use crate::error::{Error, Result};
use crate::offset::FileOffset;

/// Fills `bytes` by calling `step` until done. A step of zero bytes is the end of the file.
pub(crate) fn read_full(
    path: &Path,
    offset: FileOffset,
    bytes: &mut [u8],
    mut step: impl FnMut(FileOffset, &mut [u8]) -> io::Result<usize>,
) -> Result<()> {
    let wanted = offset.plus(bytes.len() as u64);
    let mut at = offset;
    let mut rest = bytes;
    while !rest.is_empty() {
        match step(at, rest) {
            Ok(0) => {
                return Err(Error::UnexpectedEnd { path: path.to_path_buf(), len: at, wanted });
            }
            Ok(count) => {
                at = at.plus(count as u64);
                rest = rest.get_mut(count..).unwrap_or_default();
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Error::from_io("read", path, error)),
        }
    }
    Ok(())
}

/// Writes `bytes` by calling `step` until done.
pub(crate) fn write_full(
    path: &Path,
    offset: FileOffset,
    bytes: &[u8],
    mut step: impl FnMut(FileOffset, &[u8]) -> io::Result<usize>,
) -> Result<()> {
    let mut at = offset;
    let mut rest = bytes;
    while !rest.is_empty() {
        match step(at, rest) {
            Ok(0) => {
                let error = io::Error::from(io::ErrorKind::WriteZero);
                return Err(Error::from_io("write", path, error));
            }
            Ok(count) => {
                at = at.plus(count as u64);
                rest = rest.get(count..).unwrap_or_default();
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Error::from_io("write", path, error)),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_steps_and_interruptions_are_continued() {
        let source: Vec<u8> = (0..100).collect();
        let mut target = vec![0; 90];
        let mut calls = 0;
        read_full(Path::new("f"), FileOffset::new(10), &mut target, |at, rest| {
            calls += 1;
            if calls % 3 == 0 {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let from = usize::try_from(at.get()).unwrap();
            let count = rest.len().min(7);
            rest[..count].copy_from_slice(&source[from..from + count]);
            Ok(count)
        })
        .unwrap();
        assert_eq!(target, source[10..]);
    }

    #[test]
    fn the_end_of_a_file_is_named() {
        let result = read_full(Path::new("f"), FileOffset::new(4), &mut [0; 8], |at, _| {
            Ok(if at.get() < 6 { 2 } else { 0 })
        });
        let Err(Error::UnexpectedEnd { len, wanted, .. }) = result else { panic!("{result:?}") };
        assert_eq!((len.get(), wanted.get()), (6, 12));
    }

    #[test]
    fn a_full_disk_after_a_part_is_a_full_disk() {
        let mut written = 0;
        let result = write_full(Path::new("f"), FileOffset::ZERO, &[1; 10], |_, rest| {
            if written >= 4 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            written += rest.len().min(4);
            Ok(4)
        });
        assert!(result.unwrap_err().is_disk_full());
    }
}

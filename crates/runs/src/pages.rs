//! The pages of a run being written: where a codec's builder puts its leaves.
//!
//! A leaf goes to the file, its first key to the directory, its hashes to the filter. A row too
//! large for a leaf is *spilled*: its bytes fill whole pages, written at once, to which the current
//! leaf refers.

use std::path::PathBuf;

use varve_io::{Checksum, PAGE_PAYLOAD_LEN, PageFile, PageFileWriter, PageNumber};

use crate::codec::Codec;
use crate::directory::{Directory, DirectoryBuilder};
use crate::filter::{Filter, FilterBuilder};
use crate::footer::Footer;
use crate::run_error::RunError;

/// The pages of a run that is being written.
#[derive(Debug)]
pub struct Pages<C: Codec> {
    path: PathBuf,
    file: PageFileWriter,
    directory: DirectoryBuilder<C>,
    filter: FilterBuilder<C>,
    digest: Checksum,
    data_pages: u64,
}

impl<C: Codec> Pages<C> {
    pub(crate) fn new(file: PageFileWriter, path: PathBuf, filter: FilterBuilder<C>) -> Self {
        let (directory, digest) = (DirectoryBuilder::default(), Checksum::new());
        Self { path, file, directory, filter, digest, data_pages: 0 }
    }

    /// Writes a leaf: its first and last key, its payload, and the hashes of its rows' keys in
    /// their order. Equal neighbours among these go into the filter once.
    pub fn leaf(
        &mut self,
        keys: (C::Key, C::Key),
        payload: &[u8],
        hashes: impl IntoIterator<Item = u64>,
    ) -> Result<(), C::Error> {
        let number = self.directory.next();
        let number = number.ok_or_else(|| RunError::TooManyLeaves { path: self.path.clone() })?;
        let page = self.write(payload)?;
        self.data_pages += 1;
        self.directory.push(number, keys.0, keys.1, page);
        self.filter.push_leaf(keys.0, hashes);
        Ok(())
    }

    /// Writes bytes that are too large for a leaf into separate pages; returns the first. They are
    /// read with [`LeafPlace::read_spill`](crate::LeafPlace::read_spill).
    pub fn spill(&mut self, bytes: &[u8]) -> Result<PageNumber, C::Error> {
        let mut first = None;
        for part in bytes.chunks(PAGE_PAYLOAD_LEN) {
            let page = self.write(part)?;
            self.data_pages += 1;
            first.get_or_insert(page);
        }
        Ok(first.unwrap_or(PageNumber(0)))
    }

    /// Writes a page and adds it to the digest, with the zeroes at its end.
    fn write(&mut self, payload: &[u8]) -> Result<PageNumber, RunError> {
        const ZEROES: [u8; PAGE_PAYLOAD_LEN] = [0; PAGE_PAYLOAD_LEN];
        let zeroes = ZEROES.get(payload.len()..).unwrap_or_default();
        self.digest = self.digest.with(payload).with(zeroes);
        Ok(self.file.push(payload)?)
    }

    /// Writes directory, filter and footer, and syncs the file.
    pub(crate) fn finish(mut self, footer: Footer) -> Result<Finished<C>, RunError> {
        let directory = std::mem::take(&mut self.directory).finish();
        let filter = self.filter.finish();
        for section in [directory.encode(), filter.encode()] {
            for part in section.chunks(PAGE_PAYLOAD_LEN) {
                self.write(part)?;
            }
        }
        let footer = Footer {
            data_pages: self.data_pages,
            directory: directory.counts(),
            chunks: filter.chunks(),
            filter_len: filter.encoded_len(),
            digest: self.digest.get(),
            ..footer
        };
        let bytes = footer.encode();
        let own = self.file.push(&bytes)?;
        assert_eq!(own.0, footer.own_page(C::KEY_LEN), "the footer is where readers look for it");
        debug_assert_eq!(Footer::decode(&bytes, own.0, C::KEY_LEN), Ok(footer));
        let file = self.file.finish()?;
        assert_eq!(file.pages(), own.0 + 1, "the footer is the last page");
        Ok(Finished { file, path: self.path, footer, directory, filter })
    }
}

/// A run whose file is complete.
#[derive(Debug)]
pub(crate) struct Finished<C: Codec> {
    pub(crate) file: PageFile,
    pub(crate) path: PathBuf,
    pub(crate) footer: Footer,
    pub(crate) directory: Directory<C>,
    pub(crate) filter: Filter<C>,
}

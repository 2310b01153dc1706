//! Block files, as Bitcoin Core writes them.
//!
//! ```text
//! blk00000.dat   │ magic 4 │ size u32le │ block │ magic 4 │ size u32le │ block │ …
//! xor.dat        │ key 8 │
//! ```
//!
//! A file ends before it would exceed 128 MiB. With a key, byte `i` of every file is XORed with
//! byte `i mod 8` of the key.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use varve_types::Network;
use varve_types::blk::XorKey;

/// Bitcoin Core's `MAX_BLOCKFILE_SIZE`.
const MAX_FILE: u64 = 128 << 20;
const BUFFER: usize = 1 << 20;

/// Writes the blocks of one chain.
pub(crate) struct BlockFiles {
    folder: PathBuf,
    magic: [u8; 4],
    key: Option<XorKey>,
    file: BufWriter<File>,
    /// The number of the file, and how long it is.
    number: u32,
    length: u64,
    limit: u64,
    scratch: Vec<u8>,
}

impl BlockFiles {
    /// Starts a set of block files in `folder`, which must not have one.
    pub(crate) fn create(
        folder: &Path,
        network: Network,
        key: Option<[u8; 8]>,
    ) -> Result<Self, io::Error> {
        fs::create_dir_all(folder)?;
        if let Some(key) = key {
            File::create_new(folder.join("xor.dat"))?.write_all(&key)?;
        }
        Ok(Self {
            folder: folder.to_owned(),
            magic: network.disk_magic(),
            key: key.map(XorKey::new),
            file: open(folder, 0)?,
            number: 0,
            length: 0,
            limit: MAX_FILE,
            scratch: Vec::new(),
        })
    }

    /// Whether `folder` already has block files, or the key of some.
    pub(crate) fn exist(folder: &Path) -> bool {
        let is_taken =
            |name: &str| name == "xor.dat" || (name.starts_with("blk") && name.ends_with(".dat"));
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.into_iter().any(|entry| entry.file_name().to_str().is_some_and(is_taken))
    }

    /// Appends a block.
    pub(crate) fn append(&mut self, block: &[u8]) -> Result<(), io::Error> {
        let size = u32::try_from(block.len())
            .map_err(|_| io::Error::other("a block file cannot hold a block of 4 GiB"))?;
        let record = u64::from(size) + 8;
        if self.length > 0 && self.length + record > self.limit {
            self.file.flush()?;
            self.number += 1;
            self.length = 0;
            self.file = open(&self.folder, self.number)?;
        }
        let mut head = [0; 8];
        let (magic, length) = head.split_at_mut(4);
        magic.copy_from_slice(&self.magic);
        length.copy_from_slice(&size.to_le_bytes());
        self.write(&head)?;
        self.write(block)
    }

    /// Writes out what is still buffered.
    pub(crate) fn finish(mut self) -> Result<(), io::Error> {
        self.file.flush()
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), io::Error> {
        let Some(key) = self.key else {
            self.length += bytes.len() as u64;
            return self.file.write_all(bytes);
        };
        self.scratch.clear();
        self.scratch.extend_from_slice(bytes);
        key.apply(self.length, &mut self.scratch);
        self.length += bytes.len() as u64;
        self.file.write_all(&self.scratch)
    }
}

fn open(folder: &Path, number: u32) -> Result<BufWriter<File>, io::Error> {
    let file = File::create_new(folder.join(format!("blk{number:05}.dat")))?;
    Ok(BufWriter::with_capacity(BUFFER, file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_ends_before_it_is_too_long_and_every_file_is_xored_from_its_start() {
        let folder = tempfile::tempdir().unwrap();
        let key = [1, 2, 3, 4, 5, 6, 7, 8];
        let mut files = BlockFiles::create(folder.path(), Network::Regtest, Some(key)).unwrap();
        files.limit = 100;
        let blocks = [vec![0xaa; 50], vec![0xbb; 33], vec![0xcc; 300], vec![0xdd; 1]];
        for block in &blocks {
            files.append(block).unwrap();
        }
        files.finish().unwrap();
        assert_eq!(fs::read(folder.path().join("xor.dat")).unwrap(), key);
        let read = |number: u32| {
            let bytes = fs::read(folder.path().join(format!("blk{number:05}.dat"))).unwrap();
            bytes.iter().zip(key.iter().cycle()).map(|(byte, key)| byte ^ key).collect::<Vec<u8>>()
        };
        let record = |block: &[u8]| {
            let size = u32::try_from(block.len()).unwrap().to_le_bytes();
            [&[0xfa, 0xbf, 0xb5, 0xda], size.as_slice(), block].concat()
        };
        assert_eq!(read(0), [record(&blocks[0]), record(&blocks[1])].concat());
        assert_eq!(read(1), record(&blocks[2]));
        assert_eq!(read(2), record(&blocks[3]));
        assert!(!folder.path().join("blk00003.dat").exists());
    }
}

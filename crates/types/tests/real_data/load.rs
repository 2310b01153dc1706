//! Every block of the data, extracted from its container.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use varve_types::blk::{End, Records, XorKey};
use varve_types::{BlockHash, Format, Network};

/// A block, and what its container says about it.
pub(crate) struct RealBlock {
    /// The file, for messages.
    pub(crate) source: String,
    pub(crate) format: Format,
    pub(crate) bytes: Vec<u8>,
    /// The hash in the file's name.
    pub(crate) hash: Option<BlockHash>,
    /// The height in the file's name.
    pub(crate) height: Option<u32>,
}

impl RealBlock {
    fn new(source: &Path, format: Format, bytes: Vec<u8>) -> Self {
        let source = source.display().to_string();
        Self { source, format, bytes, hash: None, height: None }
    }
}

pub(crate) use varve_testdata::chains::hex as unhex;

/// The files below a folder, sorted.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files.extend(self::files(&path)) } else { files.push(path) }
    }
    files.sort();
    files
}

pub(crate) fn name(path: &Path) -> &str {
    path.file_name().unwrap().to_str().unwrap()
}

fn bunzip(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    bzip2::read::BzDecoder::new(fs::File::open(path).unwrap()).read_to_end(&mut bytes).unwrap();
    bytes
}

fn unzstd(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    let file = fs::File::open(path).unwrap();
    ruzstd::decoding::StreamingDecoder::new(file).unwrap().read_to_end(&mut bytes).unwrap();
    bytes
}

/// The blocks of a blk-framed file, and how it ends.
fn framed(bytes: &[u8], network: Network) -> (Vec<Vec<u8>>, End) {
    let mut records = Records::new(bytes, network.disk_magic());
    let blocks = records.by_ref().map(|record| record.block.to_vec()).collect();
    (blocks, records.end())
}

/// Mainnet 0–4312, in order of height.
pub(crate) fn mainnet() -> Option<Vec<Vec<u8>>> {
    let file = fs::read(varve_testdata::data("chains/mainnet-0-4312.blk.dat")?).unwrap();
    let (blocks, end) = framed(&file, Network::Mainnet);
    assert_eq!((blocks.len(), end), (4313, End::Clean));
    Some(blocks)
}

/// Regtest 0–206, in order of height.
pub(crate) fn regtest() -> Option<Vec<Vec<u8>>> {
    let blocks = varve_testdata::chains::kernel(Network::Regtest.genesis_block())?;
    assert_eq!(blocks.len(), 207);
    Some(blocks)
}

/// Signet 0–120, in order of height.
pub(crate) fn signet() -> Option<Vec<Vec<u8>>> {
    let blocks = varve_testdata::chains::signet()?;
    assert_eq!(blocks.len(), 121);
    Some(blocks)
}

/// The chain that Core wrote: every block in its file, stale ones too, in order of arrival.
pub(crate) fn core_regtest() -> Option<Vec<Vec<u8>>> {
    let folder = varve_testdata::data("regtest-core31/blocks")?;
    let key = XorKey::new(fs::read(folder.join("xor.dat")).unwrap().try_into().unwrap());
    assert!(!key.is_zero());
    let mut file = fs::read(folder.join("blk00000.dat")).unwrap();
    key.apply(0, &mut file);
    let (blocks, end) = framed(&file, Network::Regtest);
    assert!(matches!(end, End::NoMagic { .. }), "a preallocated tail, got {end:?}");
    assert_eq!(blocks.len(), 617);
    Some(blocks)
}

pub(crate) fn json(path: &Path) -> serde_json::Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// The records in a listing: lines of hex groups, among lines of words.
fn listing(text: &str) -> Vec<u8> {
    let is_hex =
        |group: &str| group.len().is_multiple_of(2) && group.bytes().all(|b| b.is_ascii_hexdigit());
    let lines = text.lines().filter(|line| line.split_whitespace().all(is_hex));
    unhex(&lines.flat_map(str::split_whitespace).collect::<String>())
}

/// The blocks of `chains`, `regtest-core31`, `blocks` and `stale`.
pub(crate) fn all() -> Option<Vec<RealBlock>> {
    let mut blocks = chains()?;
    blocks.extend(singles()?);
    for path in files(&varve_testdata::data("stale")?) {
        let (height, hash) = name(&path).strip_suffix(".bin").unwrap().split_once('-').unwrap();
        blocks.push(RealBlock {
            hash: Some(hash.parse().unwrap()),
            height: Some(height.parse().unwrap()),
            ..RealBlock::new(&path, Format::Segwit, fs::read(&path).unwrap())
        });
    }
    Some(blocks)
}

fn chains() -> Option<Vec<RealBlock>> {
    let mut blocks = Vec::new();
    let mut add = |source: &str, format, chain: Vec<Vec<u8>>| {
        let source = Path::new(source);
        blocks.extend(chain.into_iter().map(|bytes| RealBlock::new(source, format, bytes)));
    };
    add("mainnet", Format::Segwit, mainnet()?);
    add("regtest", Format::Segwit, regtest()?);
    add("signet", Format::Segwit, signet()?);
    add("regtest-core31", Format::Segwit, core_regtest()?);
    for path in files(&varve_testdata::data("chains/btcd-reorg")?) {
        let bytes = match path.extension().and_then(|end| end.to_str()) {
            Some("bz2") => bunzip(&path),
            _ => listing(&fs::read_to_string(&path).unwrap()),
        };
        let (chain, end) = framed(&bytes, Network::Mainnet);
        assert_eq!(end, End::Clean, "{}", path.display());
        add(name(&path), Format::Segwit, chain);
    }
    for path in files(&varve_testdata::data("chains/conduit-regtest")?) {
        if let Ok(hash) = name(&path).parse() {
            let block = RealBlock::new(&path, Format::Legacy, fs::read(&path).unwrap());
            blocks.push(RealBlock { hash: Some(hash), ..block });
        }
    }
    Some(blocks)
}

fn singles() -> Option<Vec<RealBlock>> {
    let mut blocks = Vec::new();
    for path in files(&varve_testdata::data("blocks")?) {
        let name = name(&path);
        let bytes = if name.contains("-undo") || name.contains("utxo") {
            continue;
        } else if name.ends_with(".zst") {
            unzstd(&path)
        } else if name.ends_with(".bz2") {
            let (framed, end) = framed(&bunzip(&path), Network::Mainnet);
            assert_eq!(end, End::Clean);
            framed.concat()
        } else {
            fs::read(&path).unwrap()
        };
        let digits = name.split(|c: char| !c.is_ascii_digit()).find(|part| !part.is_empty());
        blocks.push(RealBlock {
            height: Some(digits.unwrap().parse().unwrap()),
            ..RealBlock::new(&path, Format::Segwit, bytes)
        });
    }
    Some(blocks)
}

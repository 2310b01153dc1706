//! The same description gives the same bytes: twice, on any machine, with any number of threads.

#![expect(clippy::unwrap_used, reason = "a test stops where it fails")]

use std::fs;
use std::path::Path;

use bitcoin::hashes::{Hash as _, HashEngine as _, sha256};
use varve_sim::{Chain, Config, Profile, WriteError, write_chain};

fn small(profile: Profile, seed: u64) -> Config {
    Config {
        signed_percent: 20,
        reorg_depth: Some(3),
        transactions: Some(30),
        mempool: 40,
        ..Config::new(profile, 130, seed)
    }
}

/// SHA-256 over every file below a folder, in the order of their names.
fn hash_folder(folder: &Path) -> String {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    let mut engine = sha256::Hash::engine();
    for file in files {
        engine.input(file.strip_prefix(folder).unwrap().to_str().unwrap().as_bytes());
        engine.input(&fs::read(file).unwrap());
    }
    sha256::Hash::from_engine(engine).to_string()
}

fn hash_written(config: &Config) -> String {
    let folder = tempfile::tempdir().unwrap();
    write_chain(config, folder.path(), |_| ()).unwrap();
    hash_folder(folder.path())
}

/// SHA-256 over the blocks and the mempool, made with this many threads.
fn hash_streamed(config: &Config, threads: usize) -> String {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    pool.install(|| {
        let mut chain = Chain::new(config).unwrap();
        let mut engine = sha256::Hash::engine();
        for block in chain.by_ref() {
            engine.input(&block.bytes);
        }
        for transaction in chain.into_mempool() {
            engine.input(&transaction.bytes);
        }
        sha256::Hash::from_engine(engine).to_string()
    })
}

#[test]
fn the_same_seed_gives_the_same_files() {
    let config = Config { xor: true, ..small(Profile::Mainnet, 7) };
    let first = hash_written(&config);
    assert_eq!(first, hash_written(&config));
    assert_ne!(first, hash_written(&Config { seed: 8, ..config }));
}

/// These were made once. They change only when the generator changes on purpose.
const GOLDEN: [(Profile, &str, &str); 3] = [
    (
        Profile::Mainnet,
        "3fcd6a219562d3e6ecd35befd7058efcfdc839730756ba2113204ef9f2d34676",
        "99b07d09127666a688e375047e2f33dfcdd1ee12a02badefa643d894500b6280",
    ),
    (
        Profile::Dense,
        "4646e3b8579da61ad5e18a2641ecd0fbf9ee2d0f69c22ab69845b63c49c05666",
        "294e6469e377c6be0ba32fa82cec0940b62061566cfcece634a87bd0db45fcee",
    ),
    (
        Profile::Bsv,
        "830dd6c1de3c909eaf60ea3e31a878f576a405b0432c71fcd1e82c65f9830b2f",
        "39780d72e3f69ba48f94b04d77866ddabf06e45981d2d4358c36b9d2b0257d58",
    ),
];

#[test]
fn every_machine_and_thread_count_gives_these_bytes() {
    for (profile, blocks, files) in GOLDEN {
        let config = small(profile, 7);
        assert_eq!(hash_streamed(&config, 1), blocks, "{profile:?}");
        assert_eq!(hash_streamed(&config, 5), blocks, "{profile:?}");
        assert_eq!(hash_written(&config), files, "{profile:?}");
    }
}

#[test]
fn a_folder_with_blocks_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let config = Config::new(Profile::Mainnet, 3, 1);
    write_chain(&config, folder.path(), |_| ()).unwrap();
    let error = write_chain(&config, folder.path(), |_| ()).unwrap_err();
    assert!(matches!(error, WriteError::Exists { .. }), "{error}");
    assert!(error.to_string().contains("choose another folder"), "{error}");
}

#[test]
fn nonsense_is_refused() {
    let config = Config::new(Profile::Mainnet, 3, 1);
    assert!(Chain::new(&Config { signed_percent: 101, ..config.clone() }).is_err());
    assert!(Chain::new(&Config { reorg_depth: Some(0), ..config.clone() }).is_err());
    assert!(Chain::new(&Config { reorg_depth: Some(100), ..config }).is_err());
}

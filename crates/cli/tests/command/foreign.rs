//! Files that Varve did not write: no command removes or overwrites them, whatever they are called.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::varve::{ask, json, refusal, run, simulate, varve};

/// Files of a user, with names that look like those of the stores.
const DOCUMENTS: &[&str] = &[
    "utxo/thesis.txt",
    "utxo/marathon.run",
    "utxo/0000000001.run.bak",
    "utxo/1.run",
    "utxo/shop.window",
    "utxo/undo-notes",
    "archive/2019.tar",
    "archive/tx.head.bak",
    "archive/tx-old",
    "archive/tx.redo-mine",
    "stats/stats-2024",
    "stats/notes",
    "blocks/index-cards",
    "blocks/packed-lunch",
    "blocks/blk00000.dat",
    "commit/commits.txt",
];

/// The same with names that the stores would give next or some day: nothing is opened beside them,
/// because the store would write over them.
const IN_THE_WAY: &[&str] = &[
    "utxo/0000000099.run",
    "utxo/0000000099.window",
    "utxo/undo-000000000099",
    "archive/tx-000000000099",
    "archive/tx.redo-0000000000000099",
    "stats/stats-000000000099",
    "blocks/index-000000000099",
    "blocks/packed-00000000000000000099",
    "commit/commits-000000000099",
];

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Every entry below a folder: its path, and the content of files.
fn contents(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        match entry.file_type().unwrap() {
            kind if kind.is_dir() => {
                found.extend(contents(&path));
                found.push((path, Vec::new()));
            }
            kind if kind.is_file() => found.push((path.clone(), fs::read(&path).unwrap())),
            _ => found.push((path, b"a link".to_vec())),
        }
    }
    found.sort();
    found
}

/// A synced folder with the figures by height, and the files its chain came from.
fn synced(folder: &Path) -> (PathBuf, PathBuf) {
    let (chain, data) = (folder.join("chain"), folder.join("data"));
    simulate(&chain);
    let sync = ["sync", "--from", text(&chain), "--index", "stats", "--stop-height", "105"];
    ask(&data, &sync);
    (chain, data)
}

#[test]
fn repair_refuses_what_it_did_not_write_and_removes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (_, data) = synced(folder.path());
    let outside = folder.path().join("outside");
    fs::write(&outside, "a letter").unwrap();
    let refused = |name: &str| {
        let before = contents(&data);
        let message = refusal(&run(&data, &["repair"]));
        assert!(message.contains(name) && message.contains("did not write"), "{name}: {message}");
        // The lock says who had the folder last.
        let all_but_lock = |found: Vec<(PathBuf, Vec<u8>)>| -> Vec<_> {
            found.into_iter().filter(|(path, _)| !path.ends_with("lock")).collect()
        };
        assert!(all_but_lock(before) == all_but_lock(contents(&data)), "{name}");
    };
    for name in DOCUMENTS.iter().chain(IN_THE_WAY) {
        let path = data.join(name);
        fs::write(&path, name).unwrap();
        refused(name);
        fs::remove_file(&path).unwrap();
    }
    let path = data.join("utxo/backup");
    fs::create_dir(&path).unwrap();
    refused("utxo/backup");
    fs::remove_dir(&path).unwrap();
    // A link with the name of a run: writing the run would write through it.
    for name in ["utxo/0000000099.run", "archive/elsewhere"] {
        let path = data.join(name);
        symlink(&outside, &path).unwrap();
        refused(name);
        fs::remove_file(&path).unwrap();
    }
    let path = data.join("archive").join(OsStr::from_bytes(b"caf\xe9.run"));
    fs::write(&path, "not UTF-8").unwrap();
    refused("archive/caf");
    fs::remove_file(&path).unwrap();
    assert_eq!(fs::read(&outside).unwrap(), b"a letter");
    // Beside the stores a user may keep what they like.
    fs::write(data.join("notes.txt"), "mine").unwrap();
    assert_eq!(ask(&data, &["repair"])["height"], 105);
    assert_eq!(fs::read(data.join("notes.txt")).unwrap(), b"mine");
}

#[test]
fn no_command_removes_a_document_from_a_store() {
    let folder = tempfile::tempdir().unwrap();
    let (chain, data) = synced(folder.path());
    run(&data, &["records", "conflicts"]);
    let documents = DOCUMENTS.iter().chain(&["records/log-book", "records/blobs/wedding.part"]);
    documents.clone().for_each(|name| fs::write(data.join(name), name).unwrap());
    for args in [
        &["status"][..],
        &["verify"],
        &["sync", "--from", text(&chain)],
        &["sync", "--from", text(&chain), "--index", "filter,script"],
        &["sync", "--from", text(&chain), "--index", "none", "--prune", "1M"],
        &["utxo", "stats", "--at", "50"],
        &["repair"],
        &["records", "conflicts"],
        &["records", "prune"],
    ] {
        // Some are refused because of the documents; none touches them.
        run(&data, args);
        for name in documents.clone() {
            let found = fs::read(data.join(name)).ok();
            assert_eq!(found.as_deref(), Some(name.as_bytes()), "{args:?} took {name}");
        }
    }
}

#[test]
fn no_command_removes_a_document_with_the_name_of_a_file_to_come() {
    let folder = tempfile::tempdir().unwrap();
    let (chain, data) = synced(folder.path());
    for name in IN_THE_WAY {
        let path = data.join(name);
        // As long as a header, and longer.
        let letter = name.repeat(10);
        fs::write(&path, &letter).unwrap();
        for args in [&["status"][..], &["sync", "--from", text(&chain)], &["repair"]] {
            run(&data, args);
            let found = fs::read_to_string(&path).ok();
            assert_eq!(found.as_ref(), Some(&letter), "{args:?} took {name}");
        }
        fs::remove_file(&path).unwrap();
    }
    ask(&data, &["verify"]);
}

#[test]
fn a_folder_of_somebody_else_is_not_made_a_database() {
    let folder = tempfile::tempdir().unwrap();
    let (chain, home) = (folder.path().join("chain"), folder.path().join("home"));
    simulate(&chain);
    fs::create_dir_all(home.join("data")).unwrap();
    fs::write(home.join("letter.txt"), "dear").unwrap();
    fs::write(home.join("data/letter.txt"), "dear").unwrap();
    let snapshot = varve_testdata::data("regtest-core31/snapshot.dat");
    let mut commands = vec![
        vec!["sync", "--from", text(&chain)],
        vec!["demo", "--blocks", "3", "--keep", text(&home)],
    ];
    commands
        .extend(snapshot.iter().map(|file| vec!["utxo", "import", text(file), "--height", "600"]));
    let before = contents(&home);
    for command in &commands {
        let message = refusal(&run(&home, command));
        assert!(message.contains("is not empty"), "{command:?}: {message}");
        assert!(message.contains("letter.txt"), "{command:?}: {message}");
        assert!(contents(&home) == before, "{command:?} changed the folder");
    }
    // Nor do folders of the names that we use make it ours.
    for name in ["records", "utxo"] {
        let data = folder.path().join(name);
        fs::create_dir_all(data.join(name)).unwrap();
        fs::write(data.join(name).join("diary"), "today").unwrap();
        let before = contents(&data);
        let records = vec!["records", "conflicts"];
        for command in commands.iter().chain([&records]).filter(|command| command[0] == name) {
            let message = refusal(&run(&data, command));
            assert!(message.contains("is not empty"), "{command:?}: {message}");
            assert!(contents(&data) == before, "{command:?} changed the folder");
        }
    }
    // A lock of another program, and one that leads to a document.
    let data = folder.path().join("locked");
    fs::create_dir(&data).unwrap();
    fs::write(data.join("lock"), "of the front door").unwrap();
    let sync = ["sync", "--from", text(&chain)];
    assert!(refusal(&run(&data, &sync)).contains("is not empty"));
    assert_eq!(fs::read(data.join("lock")).unwrap(), b"of the front door");
    fs::remove_file(data.join("lock")).unwrap();
    symlink(home.join("letter.txt"), data.join("lock")).unwrap();
    refusal(&run(&data, &sync));
    assert_eq!(fs::read(home.join("letter.txt")).unwrap(), b"dear");
    // A file system's own folder is no document.
    let mount = folder.path().join("mount");
    fs::create_dir_all(mount.join("lost+found")).unwrap();
    assert_eq!(ask(&mount, &["sync", "--from", text(&chain)])["height"], 124);
}

#[test]
fn a_failed_import_takes_back_its_own_files_alone() {
    let Some(snapshot) = varve_testdata::data("regtest-core31/snapshot.dat") else { return };
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let half = folder.path().join("half");
    let bytes = fs::read(&snapshot).unwrap();
    fs::write(&half, &bytes[..bytes.len() / 2]).unwrap();
    let import = |file: &Path| run(&data, &["utxo", "import", text(file), "--height", "999"]);
    json(&import(&snapshot));
    // An empty set, as an import leaves it that was killed, with a document beside it.
    for entry in fs::read_dir(data.join("utxo")).unwrap().map(Result::unwrap) {
        fs::remove_file(entry.path()).unwrap();
    }
    let disk = varve_io::Disk::open(&data.join("utxo")).unwrap();
    let key = varve_utxo::StoreKey {
        id: varve_io::StoreId([1; 16]),
        secret: varve_utxo::Secret::new([2; 16]),
    };
    let options = varve_utxo::Options::new(varve_types::Network::Regtest, key);
    drop(varve_utxo::Database::open(std::sync::Arc::new(disk), options).unwrap());
    fs::write(data.join("utxo/thesis.txt"), "years of work").unwrap();
    assert!(refusal(&import(&half)).contains("the snapshot ends within"));
    assert_eq!(fs::read(data.join("utxo/thesis.txt")).unwrap(), b"years of work");
    assert_eq!(fs::read_dir(data.join("utxo")).unwrap().count(), 1, "the rest is gone");
}

#[test]
fn sim_and_export_overwrite_nothing() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["expected.json", "blocks/blk00003.dat", "blocks/xor.dat"] {
        let out = folder.path().join(name.replace('/', "-"));
        fs::create_dir_all(out.join("blocks")).unwrap();
        fs::write(out.join(name), "mine").unwrap();
        let before = contents(&out);
        let message = refusal(&varve(&["sim", "--out", text(&out), "--blocks", "3"]));
        assert!(message.contains(text(&out)), "{message}");
        assert!(contents(&out) == before, "{name}: {message}");
    }
    let (_, data) = synced(folder.path());
    let file = folder.path().join("set.dat");
    fs::write(&file, "mine").unwrap();
    let link = folder.path().join("link.dat");
    symlink(folder.path().join("target"), &link).unwrap();
    for path in [&file, &link] {
        let message = refusal(&run(&data, &["utxo", "export", text(path)]));
        assert!(message.contains("does not exist yet"), "{message}");
    }
    assert_eq!(fs::read(&file).unwrap(), b"mine");
    assert!(!folder.path().join("target").exists());
    let message = refusal(&run(&data, &["utxo", "export", text(&folder.path().join("no/where"))]));
    assert!(message.contains("no/where"), "{message}");
}

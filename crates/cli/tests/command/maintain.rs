//! `varve index` and `varve compact`.

use serde_json::{Value, json};

use crate::varve::{ask, refusal, run, simulate};

/// The heights of the indexes that are kept, by name.
fn kept(answer: &Value) -> Vec<(&str, u64)> {
    let all = answer["indexes"].as_array().unwrap().iter();
    all.filter(|index| index["kept"] == true)
        .map(|index| (index["name"].as_str().unwrap(), index["height"].as_u64().unwrap()))
        .collect()
}

#[test]
fn indexes_are_listed_added_and_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let (chain, data) = (folder.path().join("chain"), folder.path().join("data"));
    simulate(&chain);
    let message = refusal(&run(&data, &["index", "add", "stats"]));
    assert!(message.contains("there is no chain"), "{message}");
    ask(&data, &["sync", "--from", chain.to_str().unwrap()]);
    let list = ask(&data, &["index", "list"]);
    assert_eq!(kept(&list), []);
    assert!(list["indexes"].as_array().unwrap().len() >= 3, "those that are not kept are listed");

    let added = ask(&data, &["index", "add", "stats"]);
    assert_eq!(kept(&added), [("stats", 124)]);
    let added = ask(&data, &["index", "add", "filter"]);
    assert_eq!(kept(&added), [("filter", 124), ("stats", 124)]);
    let added = ask(&data, &["index", "add", "pushdata,script", "--pushdata-rule", "conduit"]);
    let all = [("filter", 124), ("pushdata", 124), ("script", 124), ("stats", 124)];
    assert_eq!(kept(&added), all);
    let list = ask(&data, &["index", "list"]);
    assert_eq!(kept(&list), all);
    let bytes = |index: &Value| index["bytes"].as_u64();
    assert!(list["indexes"].as_array().unwrap().iter().all(|index| bytes(index) > Some(1_000)));
    ask(&data, &["verify"]);

    let left = ask(&data, &["index", "drop", "filter,pushdata,stats"]);
    assert_eq!(kept(&left), [("script", 124)]);
    assert!(!data.join("archive/pushdata/manifest").exists());
    let left = ask(&data, &["index", "drop", "script"]);
    assert_eq!(kept(&left), []);
    assert!(!data.join("stats/manifest").exists());
    assert_eq!(ask(&data, &["status"])["indexes"], json!([]));
}

/// The chain fits into the file that grows, so there is nothing to compress; how compressed blocks
/// answer is tested where files are small.
#[test]
fn a_small_chain_is_compacted_and_stays_what_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let (chain, data) = (folder.path().join("chain"), folder.path().join("data"));
    let expected = simulate(&chain);
    ask(&data, &["sync", "--from", chain.to_str().unwrap()]);
    let compacted = ask(&data, &["compact"]);
    assert_eq!((&compacted["bestblock"], &compacted["files"]), (&expected["tip"], &json!(0)));
    ask(&data, &["verify"]);
}

//! The worked examples of the design document, table by table: the same rows inserted in the same
//! order under the same poor hash give the same heads and bodies, after every insert.
//!
//! The poor hash ignores the first character of a key. The document shows where its three kinds of
//! key go: `?aad` to bucket 3, `?ood` to bucket 9, `?bcd` to bucket 15, of 20.

use std::sync::Arc;

use varve_archive::primitive::{
    Array, Blob, Geometry, Heads, KeyHasher, Link, Manifest, ManifestFile, Mark, Measure,
    RecordMap, SlabLink, SlabMap, Table, TableConfig,
};
use varve_io::faulty::FaultyStorage;
use varve_io::{Access, Caching, FileOffset, Kind, SEGMENT_HEADER_LEN, Storage, StoreId};

const BUCKETS: u32 = 20;
const KIND: Kind = Kind(*b"EXAMPLE\0");
/// What a bucket and a link hold when there is no row.
const NONE: u32 = 0xffff_ffff;

struct PoorHash;

impl KeyHasher for PoorHash {
    fn hash(&self, key: &[u8]) -> u64 {
        let bucket = match &key[1..] {
            b"aad" => 3,
            b"ood" => 9,
            b"bcd" => 15,
            other => panic!("{other:?} is not in the document"),
        };
        // The middle of the bucket's share of all hashes.
        (u64::MAX / u64::from(BUCKETS)) * bucket + (u64::MAX / u64::from(BUCKETS)) / 2
    }
}

fn config(name: &str) -> TableConfig {
    TableConfig {
        name: name.to_owned(),
        kind: KIND,
        store: StoreId([5; 16]),
        segment_len: 1600,
        geometry: Geometry { buckets: BUCKETS, load: 100 },
    }
}

fn word(text: &str) -> [u8; 8] {
    let mut value = [0; 8];
    value[..text.len()].copy_from_slice(text.as_bytes());
    value
}

/// The body of a table as its file holds it.
fn body(storage: &Arc<FaultyStorage>, table: &str, len: usize) -> Vec<u8> {
    let name = format!("{table}-000000000000");
    let file = storage.open(&name, Access::Read, Caching::Buffered).unwrap();
    let mut bytes = vec![0; len];
    file.read_at(FileOffset::new(SEGMENT_HEADER_LEN as u64), &mut bytes).unwrap();
    bytes
}

/// A checkpoint, which brings the rows to the file; it changes nothing that a reader sees.
fn save(storage: &Arc<FaultyStorage>, manifest: &mut Manifest, table: &mut dyn Table) {
    let place = ManifestFile { storage: storage.as_ref(), name: "manifest", kind: KIND };
    manifest.checkpoint(place, &mut [table], Heads::Save, b"").unwrap();
}

#[test]
fn array() {
    let storage = Arc::new(FaultyStorage::new(1));
    let mut array = Array::open(storage, &config("array"), Mark::NEW).unwrap();
    let values = ["pizza", "candy", "eggplant", "beer", "milk", "veggies", "cake"];
    for (index, value) in (0..).zip(values) {
        assert_eq!(array.push(u64::from_le_bytes(word(value))).unwrap(), index);
        assert_eq!(array.reader().len(), index + 1, "the position");
    }
    assert_eq!(array.reader().get(3).unwrap().to_le_bytes(), word("beer"));
    for (index, value) in (0..).zip(values) {
        assert_eq!(array.reader().get(index).unwrap().to_le_bytes(), word(value));
    }
    assert!(array.reader().get(7).is_err(), "behind the position");
}

/// The lengths that the document's picture gives its values.
const SLABS: [(&str, &str, u64, usize); 7] = [
    ("food", "pizza", 0, 20),
    ("abcd", "candy", 28, 52),
    ("baad", "eggplant", 88, 8),
    ("good", "beer", 104, 16),
    ("dood", "milk", 128, 48),
    ("abcd", "veggies", 184, 20),
    ("maad", "cake", 212, 92),
];
const POSITION: u64 = 312;

fn slab_value(text: &str, len: usize) -> Vec<u8> {
    let mut value = text.as_bytes().to_vec();
    value.resize(len, b' ');
    value
}

#[test]
fn blob() {
    let storage = Arc::new(FaultyStorage::new(1));
    let mut blob = Blob::open(storage, &config("blob"), Mark::NEW).unwrap();
    // The picture places its values by their first byte; each reaches to the next.
    let places = [
        ("pizza", 0, 28),
        ("candy", 28, 60),
        ("eggplant", 88, 16),
        ("beer", 104, 24),
        ("milk", 128, 44),
        ("veggies", 172, 28),
        ("cake", 200, 112),
    ];
    for (text, at, len) in places {
        assert_eq!(blob.push(&slab_value(text, len)).unwrap(), SlabLink(at));
        assert_eq!(blob.end(), SlabLink(at + len as u64), "the position");
    }
    assert_eq!(blob.end(), SlabLink(POSITION));
    let eggplant = blob.reader().get(SlabLink(88), 8, <[u8]>::to_vec).unwrap();
    assert_eq!(eggplant, b"eggplant");
    assert!(blob.push(b"").is_err(), "an empty value is not storable");
}

/// Key, link below, value: the rows of the record tables.
type Rows<'a> = &'a [(&'a str, u32, &'a str)];

const HASHMAP: Rows<'static> = &[
    ("food", NONE, "pizza"),
    ("abcd", NONE, "candy"),
    ("baad", NONE, "eggplant"),
    ("good", 0, "beer"),
    ("dood", 3, "milk"),
    ("abcd", 1, "veggies"),
    ("maad", 2, "cake"),
];

fn key(text: &str) -> [u8; 4] {
    text.as_bytes().try_into().unwrap()
}

fn bucket_of(key: &str) -> usize {
    match &key[1..] {
        "aad" => 3,
        "ood" => 9,
        _ => 15,
    }
}

/// Inserts the rows one by one; after each the head is the expected one, and the body's file holds
/// key, link and value of every row so far, byte for byte.
fn insert_rows(rows: Rows<'_>) -> RecordMap<4, 8, PoorHash> {
    let storage = Arc::new(FaultyStorage::new(1));
    let mut manifest = Manifest::new(StoreId([5; 16]), [0; 16]);
    let mut map =
        RecordMap::<4, 8, _>::open(storage.clone(), &config("map"), PoorHash, Mark::NEW).unwrap();
    let (mut head, mut bytes) = ([NONE; BUCKETS as usize], Vec::new());
    for (link, (text, next, value)) in (0..).zip(rows) {
        assert_eq!(map.insert(&key(text), &word(value)).unwrap(), Link(link));
        head[bucket_of(text)] = link;
        bytes.extend_from_slice(text.as_bytes());
        bytes.extend_from_slice(&next.to_le_bytes());
        bytes.extend_from_slice(&word(value));
        let tops = (0..).map(|bucket| map.reader().top(bucket).unwrap());
        let tops: Vec<u32> = tops.take(20).map(|top| top.map_or(NONE, |link| link.0)).collect();
        assert_eq!(tops, head, "after row {link}");
        save(&storage, &mut manifest, &mut map);
        assert_eq!(body(&storage, "map", bytes.len()), bytes, "after row {link}");
        assert_eq!(map.reader().rows(), u64::from(link) + 1, "the position");
    }
    map
}

fn values(map: &RecordMap<4, 8, PoorHash>, text: &str) -> Vec<[u8; 8]> {
    let mut found = Vec::new();
    map.reader().find_all(&key(text), &mut found).unwrap();
    found.into_iter().map(|(_, value)| value).collect()
}

#[test]
fn record_hashmap() {
    let map = insert_rows(HASHMAP);
    let reader = map.reader();
    let get = |link| reader.get(link).unwrap().value;
    let search = |text| reader.find(&key(text)).unwrap().map(|(_, value)| value);
    let link = |text| reader.find(&key(text)).unwrap().unwrap().0;
    assert_eq!(get(Link(1)), word("candy"));
    assert_eq!(get(link("baad")), word("eggplant"));
    assert_eq!(search("abcd"), Some(word("veggies")));
    assert_eq!(search("good"), Some(word("beer")));
    assert_eq!(search("mood"), None);
    assert_eq!(reader.get(Link(5)).unwrap().key, key("abcd"));
    assert_eq!(link("abcd"), Link(5));
    let round = std::str::from_utf8(&reader.get(Link(5)).unwrap().key).unwrap().to_owned();
    assert_eq!(link(&round), Link(5));
    assert_eq!(reader.get(link("abcd")).unwrap().key, key("abcd"));
    // The stacks that the picture lists beside the body.
    let mut stacks = Vec::new();
    for bucket in [3, 15, 9] {
        let mut top = reader.top(bucket).unwrap();
        while let Some(link) = top {
            stacks.push(String::from_utf8(reader.get(link).unwrap().key.to_vec()).unwrap());
            top = reader.next(link).unwrap();
        }
    }
    assert_eq!(stacks, ["maad", "baad", "abcd", "abcd", "dood", "good", "food"]);
}

#[test]
fn record_multimap() {
    let rows = [HASHMAP, &[("bbcd", 5, "fruit")]].concat();
    let map = insert_rows(&rows);
    let reader = map.reader();
    assert_eq!(values(&map, "abcd"), [word("veggies"), word("candy")], "the value stack");
    assert_eq!(values(&map, "good"), [word("beer")]);
    assert_eq!(values(&map, "baad"), [word("eggplant")]);
    assert_eq!(reader.get(Link(1)).unwrap().value, word("candy"));
    // From a row on, the conflict stack: all keys of the bucket.
    let (mut link, mut stack) = (Some(Link(7)), Vec::new());
    while let Some(at) = link {
        stack.push(reader.get(at).unwrap().value);
        link = reader.next(at).unwrap();
    }
    assert_eq!(stack, [word("fruit"), word("veggies"), word("candy")]);
    assert_eq!(reader.find(&key("abcd")).unwrap(), Some((Link(5), word("veggies"))));
    assert_eq!(reader.get(Link(5)).unwrap().key, key("abcd"));
}

/// The document leaves the length to the value; here its first four letters tell it.
#[derive(Debug)]
struct Words;

impl Measure for Words {
    const PREFIX: usize = 4;

    fn len(prefix: &[u8]) -> usize {
        let known = SLABS.iter().find(|(_, text, ..)| text.as_bytes().starts_with(prefix));
        known.map_or(0, |(.., len)| *len)
    }
}

#[test]
fn slab_hashmap() {
    let storage = Arc::new(FaultyStorage::new(1));
    let mut manifest = Manifest::new(StoreId([5; 16]), [0; 16]);
    let config = config("slab");
    let mut map =
        SlabMap::<Words, 4, 4, _>::open(storage.clone(), &config, PoorHash, Mark::NEW).unwrap();
    let nexts = [NONE, NONE, NONE, 0, 104, 28, 88];
    let (mut head, mut bytes) = ([u64::from(NONE); BUCKETS as usize], Vec::new());
    for ((text, value, at, len), next) in SLABS.into_iter().zip(nexts) {
        assert_eq!(map.insert(&key(text), &slab_value(value, len)).unwrap(), SlabLink(at));
        head[bucket_of(text)] = at;
        bytes.extend_from_slice(text.as_bytes());
        bytes.extend_from_slice(&next.to_le_bytes());
        bytes.extend_from_slice(&slab_value(value, len));
        let tops = (0..).map(|bucket| map.reader().top(bucket).unwrap());
        let tops: Vec<u64> =
            tops.take(20).map(|top| top.map_or(u64::from(NONE), |link| link.0)).collect();
        assert_eq!(tops, head, "after {value}");
        save(&storage, &mut manifest, &mut map);
        assert_eq!(body(&storage, "slab", bytes.len()), bytes, "after {value}");
    }
    assert_eq!(bytes.len() as u64, POSITION);
    let reader = map.reader();
    let text = |value: &[u8]| String::from_utf8(value.to_vec()).unwrap().trim_end().to_owned();
    let get = |at| reader.get(SlabLink(at), |_, value| text(value)).unwrap();
    let search = |wanted| reader.find(&key(wanted), text).unwrap().unwrap();
    assert_eq!(get(28), "candy");
    assert_eq!(get(search("dood").0.0), "milk");
    assert_eq!(search("good").1, "beer");
    assert_eq!(search("dood").1, "milk");
    assert_eq!(search("abcd"), (SlabLink(184), "veggies".to_owned()));
    assert_eq!(reader.get(SlabLink(184), |key, _| *key).unwrap(), key("abcd"));
    assert!(reader.find(&key("mood"), |_| ()).unwrap().is_none());
}

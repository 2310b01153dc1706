//! All records of a store into another, on whatever engines, and a proof that they are there.
//!
//! ```text
//!  for each page   read records and blobs ─► put blobs ─► restore records
//!  then            begin the intents that are pending
//!  then            read both sides again and compare every field and every blob
//! ```
//!
//! Nobody may write to either store meanwhile. Who does is found: a record that changed after it
//! was copied differs, and the copy fails and names it.

use varve_types::Txid;

use super::{Result, Store, StoreError, list};
use crate::blob::BlobKind;
use crate::engine::{Scan, ScanPage};
use crate::fields::Fields;
use crate::operation::Operation;
use crate::record::{Body, Record};

/// Records that are in memory together.
const PAGE: usize = 200;

/// What was copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyReport {
    /// Records.
    pub records: u64,
    /// Transactions that lie in blobs.
    pub blobs: u64,
    /// Conflict resolutions that are not finished.
    pub intents: u64,
}

/// Why records were not copied.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CopyError {
    /// The target has records.
    #[error("the target holds records; name an empty one")]
    NotEmpty,
    /// What was copied is not what is there.
    #[error(
        "{count} records of the source and the target differ, among them {}; stop whoever writes \
         to them and copy again", list(.first)
    )]
    Differ {
        /// How many.
        count: u64,
        /// The first ten of them.
        first: Vec<Txid>,
    },
    /// One of the stores failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Copies all records. `progress` is called with the number of records that were copied, and then
/// with that plus the number that were compared.
pub fn copy(
    from: &Store,
    to: &Store,
    progress: &mut dyn FnMut(u64),
) -> Result<CopyReport, CopyError> {
    if !page(to, None, 1)?.txids.is_empty() {
        return Err(CopyError::NotEmpty);
    }
    let mut report = CopyReport::default();
    each_page(from, |records| {
        let mut operations = Vec::with_capacity(records.len());
        for record in records {
            let record = Moved::of(record, to);
            if let Some((kind, bytes)) = record.blob(from)? {
                to.blobs.put(record.record.txid, kind, &bytes)?;
                report.blobs += 1;
            }
            operations.push(Operation::Restore(Box::new(record.record)));
        }
        report.records += operations.len() as u64;
        progress(report.records);
        to.apply(&operations)?.into_iter().try_for_each(|item| Ok(item.map(drop)?))
    })?;
    let intents = from.intents()?;
    report.intents = intents.len() as u64;
    let begin: Vec<Operation> = intents.into_iter().map(Operation::BeginIntent).collect();
    to.apply(&begin)?;
    compare(from, to, &mut |compared| progress(report.records + compared))?;
    Ok(report)
}

/// Reads everything again, on both sides.
fn compare(from: &Store, to: &Store, progress: &mut dyn FnMut(u64)) -> Result<(), CopyError> {
    let (mut compared, mut differ, mut first) = (0_u64, 0_u64, Vec::new());
    each_page(from, |records| {
        let txids: Vec<Txid> = records.iter().map(|record| record.txid).collect();
        let copies = to.engine.read(&txids, Fields::ALL)?;
        for (record, copied) in records.into_iter().zip(copies) {
            let (txid, expected) = (record.txid, Moved::of(record, to));
            let same = copied.as_ref() == Some(&expected.record)
                && expected.blob(from)? == Moved::blob_of(&expected.record, to)?;
            if !same {
                differ += 1;
                first.extend((first.len() < StoreError::NAMED).then_some(txid));
            }
            compared += 1;
        }
        progress(compared);
        Ok(())
    })?;
    let mut found = 0_u64;
    let mut next = None;
    loop {
        let page = page(to, next, PAGE)?;
        found += page.txids.len() as u64;
        next = page.next;
        if next.is_none() {
            break;
        }
    }
    let more = found.abs_diff(compared);
    let intents = from.intents()? != to.intents()?;
    if differ + more > 0 || intents {
        let count = (differ + more).max(u64::from(intents));
        return Err(CopyError::Differ { count, first });
    }
    Ok(())
}

fn page(store: &Store, after: Option<crate::engine::Cursor>, limit: usize) -> Result<ScanPage> {
    Ok(store.engine.scan(Scan::All, after, limit)?)
}

/// Shows all records of a store, a page at a time.
fn each_page(store: &Store, mut show: impl FnMut(Vec<Record>) -> Result<()>) -> Result<()> {
    let mut next = None;
    loop {
        let found = page(store, next, PAGE)?;
        let records = store.engine.read(&found.txids, Fields::ALL)?;
        show(records.into_iter().flatten().collect())?;
        next = found.next;
        if next.is_none() {
            return Ok(());
        }
    }
}

/// A record on its way: as it was, but that a body which the target does not take is outside.
struct Moved {
    record: Record,
    /// The body that lay in the record of the source.
    inside: Option<(BlobKind, bytes::Bytes)>,
}

impl Moved {
    fn of(mut record: Record, to: &Store) -> Self {
        let limit = to.engine.limits().body;
        let mut inside = None;
        if let Some(body) = &record.body
            && let Some(bytes) = body.bytes().filter(|bytes| bytes.len() as u64 > limit)
        {
            let kind = match body {
                Body::Outputs(_) => BlobKind::Outputs,
                Body::Transaction(_) | Body::External => BlobKind::Tx,
            };
            inside = Some((kind, bytes.clone()));
            record.body = Some(Body::External);
            record.external = true;
        }
        Self { record, inside }
    }

    /// What lies in a blob of the target.
    fn blob(&self, from: &Store) -> Result<Option<(BlobKind, bytes::Bytes)>> {
        match &self.inside {
            Some(inside) => Ok(Some(inside.clone())),
            None => Self::blob_of(&self.record, from),
        }
    }

    fn blob_of(record: &Record, store: &Store) -> Result<Option<(BlobKind, bytes::Bytes)>> {
        if !record.external {
            return Ok(None);
        }
        Ok(Some(store.blobs.get(record.txid)?))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::engine::Limits;
    use crate::fixture::{child, mined, options, root, store, with_engines};
    use crate::memory::{MemoryDisk, MemoryEngine};
    use crate::operation::SpendRules;

    fn filled() -> Store {
        let from = store(Arc::new(MemoryEngine::open(MemoryDisk::default())));
        for salt in 0..500 {
            let parent = root(salt, 20);
            from.create(&parent, &options()).unwrap();
            let tx = child(&[(&parent, 0), (&parent, 17)], 3, salt);
            let rules = SpendRules::at(crate::fixture::NEXT);
            from.spend_and_create(&tx, rules, &options()).unwrap();
            from.set_mined_multi(&[parent.txid()], &mined(1, 100)).unwrap();
        }
        from
    }

    #[test]
    fn everything_is_copied_to_every_engine() {
        let from = filled();
        with_engines(|new| {
            let to = store(new());
            let mut last = 0;
            let report = copy(&from, &to, &mut |done| last = done).unwrap();
            assert_eq!(report, CopyReport { records: 1_000, blobs: 0, intents: 0 });
            assert_eq!(last, 2_000, "copied and compared");
            assert!(matches!(copy(&from, &to, &mut |_| {}), Err(CopyError::NotEmpty)));
        });
    }

    #[test]
    fn what_the_target_does_not_take_goes_outside() {
        let from = filled();
        let external = root(1_000, 3);
        from.create(&external, &options()).unwrap();
        let limits = Limits { body: 50, ..Limits::NONE };
        let small = Arc::new(MemoryEngine::with_limits(MemoryDisk::default(), limits));
        let to = store(small);
        let report = copy(&from, &to, &mut |_| {}).unwrap();
        assert!(report.blobs > 0 && report.records == 1_001);
        let read = to.get(external.txid(), Fields::ALL).unwrap();
        assert_eq!(read.body, Some(Body::Transaction(external)));
    }

    /// A record that changes between the two readings is found.
    #[test]
    fn a_writer_meanwhile_is_found() {
        let from = filled();
        let to = store(Arc::new(MemoryEngine::open(MemoryDisk::default())));
        let victim = from.engine.scan(Scan::All, None, 1).unwrap().txids[0];
        let error = copy(&from, &to, &mut |done| {
            if done == 1_000 {
                from.set_locked(&[victim], true).unwrap();
            }
        });
        let Err(CopyError::Differ { count: 1, first }) = error else { panic!("{error:?}") };
        assert_eq!(first, [victim]);
    }
}

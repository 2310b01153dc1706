//! What tables are made of: append-only bodies, small heads above them, and their checkpoints.
//!
//! | you want | take | bytes drawn in |
//! |---|---|---|
//! | values of eight bytes by index, that can be cut | [`Array`] | `cells` |
//! | bytes of any length by position | [`Blob`] | `blob` |
//! | rows of one width by number and by key, newest or all | [`RecordMap`] | `records`, `head` |
//! | values of any length by position and by key | [`SlabMap`] | `slabs`, `head` |
//! | all of them saved as one | [`Manifest`], [`Table`] | `manifest`, `mark` |
//! | a way back to an old checkpoint (the seed's; no command offers it) | `snapshot` | `snapshot` |
//!
//! What holds in all of them:
//!
//! - **One owner, many readers.** Writers in many threads may share the owner; a checkpoint takes
//!   it exclusively. Readers are clones that neither wait nor block.
//! - **Two phases.** A row is *set*, which assigns its number and stores its bytes, and then
//!   *committed*, which makes it reachable by one exchange of a cell. Setting can fail, committing
//!   cannot.
//! - **Only cells change**: those of arrays, and the tops of chains. Bodies are logs; a checkpoint
//!   is the lengths of the bodies and the saved cells; returning to one truncates the bodies.
//! - **What comes off the disk is verified** when it is first touched: bodies by blocks of 4 KiB,
//!   cells by pages. A flipped bit is an error that names file and offset.
//! - **A full disk** is an error of the call that needed room; all that was committed stays
//!   readable, and the call may be repeated once there is space.
//!
//! ```
//! use std::sync::Arc;
//! use varve_archive::primitive::{
//!     Geometry, Heads, Keyed, Manifest, ManifestFile, RecordMap, Row, TableConfig,
//! };
//! use varve_io::{Disk, Kind, Storage, StoreId};
//!
//! # fn main() -> Result<(), varve_archive::primitive::Error> {
//! # let dir = tempfile::tempdir().expect("a temporary directory");
//! const KIND: Kind = Kind(*b"EXAMPLE\0");
//! let storage: Arc<dyn Storage> = Arc::new(Disk::open(dir.path())?);
//! let config = TableConfig {
//!     name: "tx".to_owned(),
//!     kind: Kind(*b"TX\0\0\0\0\0\0"),
//!     store: StoreId([7; 16]), // drawn at random, as the secret
//!     segment_len: 1 << 20,
//!     geometry: Geometry::for_rows(1000),
//! };
//! let mut manifest = Manifest::new(config.store, [9; 16]);
//! let open = |manifest: &Manifest| {
//!     let hasher = Keyed::new(manifest.secret);
//!     RecordMap::<4, 8>::open(Arc::clone(&storage), &config, hasher, manifest.mark("tx"))
//! };
//! let mut table = open(&manifest)?;
//! let pending = table.set(&[Row { key: *b"food", value: *b"pizza..." }])?;
//! let reader = table.reader().clone(); // into any thread
//! assert_eq!(reader.find(b"food")?, None, "set, not committed");
//! pending.commit();
//! let (link, value) = reader.find(b"food")?.expect("committed above");
//! assert_eq!(&value, b"pizza...");
//!
//! let file = ManifestFile { storage: storage.as_ref(), name: "manifest", kind: KIND };
//! manifest.checkpoint(file, &mut [&mut table], Heads::Save, b"the tip")?;
//! drop((table, reader));
//!
//! let manifest = Manifest::load(storage.as_ref(), "manifest", KIND)?.expect("saved above");
//! assert_eq!(manifest.owner, b"the tip");
//! assert_eq!(open(&manifest)?.reader().get(link)?.value, *b"pizza...");
//! # Ok(())
//! # }
//! ```

mod array;
mod blob;
mod cells;
mod error;
mod hasher;
mod head;
mod manifest;
mod mark;
mod record_map;
mod records;
mod shelves;
mod slab_map;
mod slabs;
#[cfg(feature = "test-suite")]
mod snapshot;
mod stage;
mod sync;
mod table;

pub use array::{Array, ArrayReader};
pub use blob::{Blob, BlobReader};
pub use error::Error;
#[cfg(feature = "test-suite")]
pub use error::Result;
pub use hasher::{KeyHasher, Keyed};
pub use head::Geometry;
pub use manifest::{Manifest, ManifestFile, is_manifest_file};
#[cfg(feature = "test-suite")]
pub use mark::Mark;
#[cfg(feature = "test-suite")]
pub use record_map::PendingRows;
pub use record_map::{RecordMap, RecordReader};
pub use records::{Link, Row};
#[cfg(feature = "test-suite")]
pub use slab_map::PendingSlab;
pub use slab_map::{SlabMap, SlabReader};
pub use slabs::{Measure, SlabLink};
#[cfg(feature = "test-suite")]
pub use table::Epoch;
pub use table::{Heads, Table, TableConfig, TableMemory, is_table_file};

//! How a transaction is serialised.
//!
//! ```text
//! Legacy     version 4 │ inputs │ outputs │ lock time 4
//! Segwit     version 4 │ 00 01 │ inputs │ outputs │ witness of each input │ lock time 4
//!            or Legacy, when no input has a witness (BIP144)
//! Extended   version 4 │ 00 00 00 00 00 ef │ inputs with the output they spend │ outputs │
//!            lock time 4 (BIP239)
//!
//! inputs     CompactSize n │ n × { outpoint 36 │ CompactSize │ script │ sequence 4 }
//! extended   … sequence 4 │ value 8 │ CompactSize │ script of the spent output }
//! outputs    CompactSize n │ n × { value 8 │ CompactSize │ script }
//! witness    CompactSize n │ n × { CompactSize │ item }
//! ```

use crate::compact_size;

/// How a transaction is serialised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// Without witness, sizes without limit: the blocks of Bitcoin SV.
    Legacy,
    /// With witness or without, sizes up to Core's 32 MiB: the blocks of Bitcoin.
    Segwit,
    /// BIP239: each input carries the output that it spends. Never in a block.
    Extended,
}

impl Format {
    /// The largest count or length that decodes.
    pub(crate) const fn size_limit(self) -> u64 {
        match self {
            Self::Segwit => compact_size::MAX_SIZE,
            Self::Legacy | Self::Extended => u64::MAX,
        }
    }
}

//! Where a slot is: which part of its record, and which place in that part.
//!
//! A transaction with many outputs is kept in parts of a fixed number of slots (the *batch*):
//! part 0 is the master record, the others are its children.
//!
//! ```text
//! part = vout div batch      offset = vout mod batch
//! ```

/// How many slots one part of a record has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BatchSize(u32);

/// The place of a slot in its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The part: 0 is the master, the others are children.
    pub part: u32,
    /// The place in that part.
    pub offset: u32,
}

impl BatchSize {
    /// This many slots a part; `None` for zero, with which no slot has a place.
    #[must_use]
    pub const fn new(slots: u32) -> Option<Self> {
        if slots == 0 { None } else { Some(Self(slots)) }
    }

    /// The number of slots a part.
    #[must_use]
    pub const fn get(self) -> u32 {
        self.0
    }

    /// Where the slot of output `vout` is.
    #[must_use]
    pub const fn place(self, vout: u32) -> Place {
        Place { part: vout / self.0, offset: vout % self.0 }
    }

    /// How many parts a record of this many outputs has: at least one, the master.
    #[must_use]
    pub const fn parts(self, outputs: u32) -> u32 {
        if outputs == 0 { 1 } else { outputs.div_ceil(self.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the original: 45,000 outputs in parts of 20,000.
    #[test]
    fn forty_five_thousand_outputs_are_three_parts() {
        let batch = BatchSize::new(20_000).unwrap();
        assert_eq!(batch.parts(45_000), 3);
        assert_eq!(batch.parts(40_000), 2);
        assert_eq!(batch.parts(0), 1);
        assert_eq!(batch.place(19_999), Place { part: 0, offset: 19_999 });
        assert_eq!(batch.place(20_000), Place { part: 1, offset: 0 });
        assert_eq!(batch.place(44_999), Place { part: 2, offset: 4_999 });
        assert_eq!(BatchSize::new(0), None);
    }
}

//! A copy-on-write vector of shared chunks.
//!
//! ```text
//! clone A ──► [ chunk │ chunk │ chunk │ tail  ]
//! clone B ──► [   │       │       │   │ tail' ]      changed at the end: only the tail is new
//!                 └───────┴───────┴── shared
//! ```
//!
//! The heights of a chain and the states of blocks are such vectors. A snapshot takes a clone,
//! which is one reference count; the first change after it copies the list of chunks and the one
//! chunk that changes. A reorganisation is a few pops and pushes at the end.

use std::sync::Arc;

/// Entries of a chunk. At mainnet's height the list has about a thousand chunks of 4 KiB.
const CHUNK: usize = 1024;

/// A vector with cheap clones and changes near its end.
#[derive(Clone, Debug)]
pub(crate) struct CowVec<T> {
    chunks: Arc<Vec<Arc<Vec<T>>>>,
    len: usize,
}

impl<T: Copy + Default> CowVec<T> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn get(&self, index: usize) -> Option<T> {
        self.chunks.get(index / CHUNK)?.get(index % CHUNK).copied()
    }

    pub(crate) fn last(&self) -> Option<T> {
        self.get(self.len.checked_sub(1)?)
    }

    pub(crate) fn push(&mut self, value: T) {
        let chunks = Arc::make_mut(&mut self.chunks);
        if self.len.is_multiple_of(CHUNK) {
            chunks.push(Arc::new(Vec::with_capacity(CHUNK)));
        }
        let tail = chunks.last_mut().expect("pushed when the last one was full");
        Arc::make_mut(tail).push(value);
        self.len += 1;
    }

    pub(crate) fn truncate(&mut self, len: usize) {
        if len >= self.len {
            return;
        }
        let chunks = Arc::make_mut(&mut self.chunks);
        chunks.truncate(len.div_ceil(CHUNK));
        if let Some(tail) = chunks.last_mut()
            && !len.is_multiple_of(CHUNK)
        {
            Arc::make_mut(tail).truncate(len % CHUNK);
        }
        self.len = len;
    }

    /// Sets an entry; the vector grows by defaults when it is shorter.
    pub(crate) fn set(&mut self, index: usize, value: T) {
        while self.len <= index {
            self.push(T::default());
        }
        let chunk = Arc::make_mut(&mut self.chunks).get_mut(index / CHUNK);
        let place = chunk.and_then(|chunk| Arc::make_mut(chunk).get_mut(index % CHUNK));
        *place.expect("grown to hold the index") = value;
    }
}

impl<T: Copy + Default> FromIterator<T> for CowVec<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        let mut vector = Self { chunks: Arc::default(), len: 0 };
        values.into_iter().for_each(|value| vector.push(value));
        vector
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn clones_keep_their_moment(
            steps in prop::collection::vec((0..4, 0_usize..3 * CHUNK), 1..60),
        ) {
            let mut vector: CowVec<usize> = (0..2 * CHUNK).collect();
            let mut model: Vec<usize> = (0..2 * CHUNK).collect();
            let mut kept = Vec::new();
            for (step, value) in steps {
                match step {
                    0 => {
                        vector.push(value);
                        model.push(value);
                    }
                    1 => {
                        vector.truncate(value);
                        model.truncate(value);
                    }
                    2 => {
                        vector.set(value, 7);
                        model.resize(model.len().max(value + 1), 0);
                        model[value] = 7;
                    }
                    _ => kept.push((vector.clone(), model.clone())),
                }
                kept.push((vector.clone(), model.clone()));
            }
            for (vector, model) in kept {
                prop_assert_eq!(vector.len(), model.len());
                prop_assert_eq!(vector.last(), model.last().copied());
                let entries: Vec<_> = (0..=model.len()).map(|index| vector.get(index)).collect();
                let expected: Vec<_> = (0..=model.len()).map(|i| model.get(i).copied()).collect();
                prop_assert_eq!(entries, expected);
            }
        }
    }
}

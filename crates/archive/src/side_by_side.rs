//! Runs a job on many items in parallel.
//!
//! The caller's thread works too, so the work completes even when no thread can be started.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::Builder;

/// Runs `run` on each item, in at most `threads` threads, and returns the results in the order of
/// the items.
pub(crate) fn side_by_side<I: Send, R: Send>(
    items: impl ExactSizeIterator<Item = I> + Send,
    threads: usize,
    run: impl Fn(I) -> R + Sync,
) -> Vec<R> {
    let helpers = threads.min(items.len()).saturating_sub(1);
    if helpers == 0 {
        return items.map(run).collect();
    }
    let done = Mutex::new(Vec::with_capacity(items.len()));
    let queue = Mutex::new(items.enumerate());
    let work = || {
        loop {
            let next = lock(&queue).next();
            let Some((place, item)) = next else { return };
            let result = run(item);
            lock(&done).push((place, result));
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..helpers {
            // The others do the work of a thread that cannot be started.
            let _ = Builder::new().name("archive".to_owned()).spawn_scoped(scope, work);
        }
        work();
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_unstable_by_key(|(place, _)| *place);
    done.into_iter().map(|(_, result)| result).collect()
}

/// A panic of one thread ends the scope; until then the others may continue.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn results_are_in_order_and_threads_work_at_once() {
        for threads in [0, 1, 2, 7] {
            let squares = side_by_side(0..100_u32, threads, |n| n * n);
            assert!(squares.iter().copied().eq((0..100).map(|n| n * n)), "{threads}");
        }
        let together = Barrier::new(3);
        let met = side_by_side([0; 3].iter(), 3, |_| together.wait().is_leader());
        assert_eq!(met.iter().filter(|leads| **leads).count(), 1);
        assert!(side_by_side(std::iter::empty::<u8>(), 4, |n| n).is_empty());
    }
}

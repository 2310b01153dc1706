//! What happens when reading a map fails.
//!
//! A read through a map has no return value: when the file was cut by someone else, or its disk
//! fails, the kernel sends `SIGBUS` to the reading thread. Going on would mean inventing bytes.
//! So the first map installs a handler that
//!
//! 1. looks the address up in a registry of our maps,
//! 2. if it is ours: writes one line naming the file and the offset to standard error and ends the
//!    process with [`FAULT_EXIT_CODE`], running no destructor and writing nothing more,
//! 3. if not: passes the signal to the previous handler.
//!
//! A signal handler may not lock or allocate. The registry is a list of chunks of slots that only
//! grows; a slot is free when its `start` is zero. Registering takes a lock, fills the other
//! fields and sets `start` last (release); the handler walks the list with loads only. The slot of
//! a faulting address cannot go away meanwhile, because the faulting thread borrows its map.

#![expect(unsafe_code, reason = "installs a signal handler and runs inside it")]

use std::mem::MaybeUninit;
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, Once, OnceLock, PoisonError};

use crate::offset::FileOffset;

/// The exit code of a process that lost the bytes under a map (`EX_IOERR` of `sysexits.h`).
pub const FAULT_EXIT_CODE: i32 = 74;

/// Slots in one chunk of the registry: 256 maps of 1 GiB are a common whole store.
const CHUNK: usize = 256;

struct Slot {
    start: AtomicUsize,
    len: AtomicUsize,
    offset: AtomicU64,
    name: AtomicPtr<u8>,
    name_len: AtomicUsize,
}

struct Chunk {
    slots: [Slot; CHUNK],
    next: AtomicPtr<Chunk>,
}

impl Chunk {
    const fn new() -> Self {
        Self {
            slots: [const {
                Slot {
                    start: AtomicUsize::new(0),
                    len: AtomicUsize::new(0),
                    offset: AtomicU64::new(0),
                    name: AtomicPtr::new(ptr::null_mut()),
                    name_len: AtomicUsize::new(0),
                }
            }; CHUNK],
            next: AtomicPtr::new(ptr::null_mut()),
        }
    }

    fn next(&self) -> Option<&'static Self> {
        // SAFETY: `next` is null or a leaked chunk, published whole by `add_chunk`.
        unsafe { self.next.load(Ordering::Acquire).as_ref() }
    }
}

static FIRST: Chunk = Chunk::new();
static REGISTERING: Mutex<()> = Mutex::new(());
static INSTALL: Once = Once::new();
static PREVIOUS: OnceLock<libc::sigaction> = OnceLock::new();

/// Keeps a range in the registry; owns the name that the handler would print.
pub(crate) struct Registration {
    slot: &'static Slot,
    _name: Box<[u8]>,
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.slot.start.store(0, Ordering::Release);
    }
}

/// Enters `bytes`, mapped from `path` at `offset`, and installs the handler the first time.
pub(crate) fn register(bytes: &[u8], path: &Path, offset: FileOffset) -> Registration {
    INSTALL.call_once(install);
    let mut name: Box<[u8]> = path.as_os_str().as_encoded_bytes().into();
    let _lock = REGISTERING.lock().unwrap_or_else(PoisonError::into_inner);
    let slot = free_slot();
    slot.len.store(bytes.len(), Ordering::Relaxed);
    slot.offset.store(offset.get(), Ordering::Relaxed);
    slot.name.store(name.as_mut_ptr(), Ordering::Relaxed);
    slot.name_len.store(name.len(), Ordering::Relaxed);
    slot.start.store(bytes.as_ptr().addr(), Ordering::Release);
    Registration { slot, _name: name }
}

/// A slot nobody uses; called with `REGISTERING` locked.
fn free_slot() -> &'static Slot {
    let mut chunk = &FIRST;
    loop {
        let free = chunk.slots.iter().find(|slot| slot.start.load(Ordering::Acquire) == 0);
        if let Some(slot) = free {
            return slot;
        }
        chunk = chunk.next().unwrap_or_else(|| {
            let fresh: &'static Chunk = Box::leak(Box::new(Chunk::new()));
            chunk.next.store(ptr::from_ref(fresh).cast_mut(), Ordering::Release);
            fresh
        });
    }
}

fn install() {
    let mut previous = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: a null new action only asks; `previous` has room for the answer. Zeroes are a valid
    // `sigaction` (default handling), so it is initialised even if the call failed.
    let previous = unsafe {
        libc::sigaction(libc::SIGBUS, ptr::null(), previous.as_mut_ptr());
        previous.assume_init()
    };
    // Set before the handler can run, so that a fault in between reaches the previous handler.
    let _ = PREVIOUS.set(previous);
    let handler: extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) = on_fault;
    // SAFETY: the action is zeroed and then filled: a handler of the three-argument kind, as
    // SA_SIGINFO says, with an empty mask. The handler only does what a handler may.
    let status = unsafe {
        let mut action = MaybeUninit::<libc::sigaction>::zeroed().assume_init();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        libc::sigemptyset(&raw mut action.sa_mask);
        libc::sigaction(libc::SIGBUS, &raw const action, ptr::null_mut())
    };
    debug_assert_eq!(status, 0, "SIGBUS can be handled");
}

extern "C" fn on_fault(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid `siginfo_t`; for SIGBUS it carries an address.
    let address = unsafe { (*info).si_addr() }.addr();
    let mut chunk = Some(&FIRST);
    while let Some(current) = chunk {
        for slot in &current.slots {
            let start = slot.start.load(Ordering::Acquire);
            let len = slot.len.load(Ordering::Relaxed);
            if start != 0 && address.wrapping_sub(start) < len {
                report_and_exit(slot, (address - start) as u64);
            }
        }
        chunk = current.next();
    }
    hand_on(signal, info, context);
}

/// Prints one line and ends the process, by two system calls that a handler may make.
fn report_and_exit(slot: &Slot, at: u64) -> ! {
    let name = slot.name.load(Ordering::Relaxed);
    let name_len = slot.name_len.load(Ordering::Relaxed);
    let mut digits = [0; 20];
    let digits = decimal(slot.offset.load(Ordering::Relaxed).saturating_add(at), &mut digits);
    // SAFETY: the name belongs to the registration of the map being read, which is alive.
    let name = unsafe { std::slice::from_raw_parts(name, name_len) };
    let parts: [&[u8]; 5] = [
        b"varve: cannot read ",
        name,
        b" through its map near byte ",
        digits,
        b": the file was cut or its disk failed; check the disk, restore the file, start again\n",
    ];
    write_and_exit(&parts, FAULT_EXIT_CODE)
}

/// Writes `parts` to standard error and ends the process at once, without allocating.
pub(crate) fn write_and_exit(parts: &[&[u8]], exit_code: i32) -> ! {
    for part in parts {
        // SAFETY: write(2) of a valid slice; it is async-signal-safe. If standard error is gone
        // nobody can be informed.
        let _ = unsafe { libc::write(libc::STDERR_FILENO, part.as_ptr().cast(), part.len()) };
    }
    // SAFETY: _exit(2) is async-signal-safe and does not return.
    unsafe { libc::_exit(exit_code) }
}

/// `value` in decimal digits, without allocating.
pub(crate) fn decimal(mut value: u64, digits: &mut [u8; 20]) -> &[u8] {
    let mut start = digits.len();
    for (index, digit) in digits.iter_mut().enumerate().rev() {
        let last = (value % 10) as u8;
        *digit = b'0' + last;
        value /= 10;
        start = index;
        if value == 0 {
            break;
        }
    }
    digits.get(start..).unwrap_or_default()
}

/// Passes a fault that is not ours to the previous handler, or lets it kill the process as it would
/// have.
fn hand_on(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let (handler, flags) =
        PREVIOUS.get().map_or((libc::SIG_DFL, 0), |p| (p.sa_sigaction, p.sa_flags));
    if handler == libc::SIG_DFL || handler == libc::SIG_IGN {
        // SAFETY: restores the default action; the raised signal is blocked until this handler
        // returns and then kills the process, as it would have without us.
        unsafe {
            libc::signal(signal, libc::SIG_DFL);
            libc::raise(signal);
        }
    } else if flags & libc::SA_SIGINFO != 0 {
        // SAFETY: a registered handler with SA_SIGINFO is a function of these three arguments.
        let handler: extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) =
            unsafe { std::mem::transmute(handler) };
        handler(signal, info, context);
    } else {
        // SAFETY: a registered handler without SA_SIGINFO is a function of the signal alone.
        let handler: extern "C" fn(i32) = unsafe { std::mem::transmute(handler) };
        handler(signal);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_printed_without_allocation() {
        for value in [0, 7, 10, 4096, u64::MAX] {
            assert_eq!(decimal(value, &mut [0; 20]), value.to_string().as_bytes());
        }
    }

    #[test]
    fn the_registry_grows_past_a_chunk_and_reuses_slots() {
        let bytes = vec![0; 600];
        let register_all = || -> Vec<Registration> {
            bytes.chunks(1).map(|b| register(b, Path::new("f"), FileOffset::ZERO)).collect()
        };
        let first = register_all();
        let slots: Vec<*const Slot> = first.iter().map(|r| ptr::from_ref(r.slot)).collect();
        let distinct: std::collections::HashSet<_> = slots.iter().collect();
        assert_eq!(distinct.len(), 600);
        drop(first);
        let again = register_all();
        assert!(again.iter().filter(|r| slots.contains(&ptr::from_ref(r.slot))).count() > 500);
    }
}

//! The SHA instructions of x86-64, several states interleaved.
//!
//! `sha256rnds2` does two rounds and has a latency of about four cycles, but a new one can start
//! every two cycles. Each line below is therefore done for all lanes before the next line: the
//! rounds of one lane fill the wait of the other.
//!
//! The instruction wants the eight state words in two registers, `ABEF` and `CDGH`. Four message
//! words make one register; the schedule of the next sixteen words runs along with the rounds:
//!
//! ```text
//! rounds  0–15   w0 w1 w2 w3        the block itself
//! rounds 16–63   w[t] = msg2(msg1(w[t-4], w[t-3]) + (w[t-2],w[t-1] shifted by one word), w[t-1])
//! ```
#![expect(unsafe_code, reason = "intrinsics behind run-time detection; docs/adr/0003")]
#![expect(clippy::indexing_slicing, reason = "constant indexes and lane numbers below N")]
#![expect(clippy::needless_range_loop, reason = "a lane is a number across several arrays")]

use std::arch::x86_64::{
    __m128i, _mm_add_epi32, _mm_alignr_epi8, _mm_blend_epi16, _mm_loadu_si128, _mm_set_epi64x,
    _mm_sha256msg1_epu32, _mm_sha256msg2_epu32, _mm_sha256rnds2_epu32, _mm_shuffle_epi8,
    _mm_shuffle_epi32, _mm_storeu_si128,
};

use crate::feed::Block;
use crate::lanes::{Kernel, State};

/// The round constants: the first 32 bits of the fractional parts of the cube roots of the first
/// 64 primes (FIPS 180-4, 4.2.2).
const K: [[u32; 4]; 16] = [
    [0x428a_2f98, 0x7137_4491, 0xb5c0_fbcf, 0xe9b5_dba5],
    [0x3956_c25b, 0x59f1_11f1, 0x923f_82a4, 0xab1c_5ed5],
    [0xd807_aa98, 0x1283_5b01, 0x2431_85be, 0x550c_7dc3],
    [0x72be_5d74, 0x80de_b1fe, 0x9bdc_06a7, 0xc19b_f174],
    [0xe49b_69c1, 0xefbe_4786, 0x0fc1_9dc6, 0x240c_a1cc],
    [0x2de9_2c6f, 0x4a74_84aa, 0x5cb0_a9dc, 0x76f9_88da],
    [0x983e_5152, 0xa831_c66d, 0xb003_27c8, 0xbf59_7fc7],
    [0xc6e0_0bf3, 0xd5a7_9147, 0x06ca_6351, 0x1429_2967],
    [0x27b7_0a85, 0x2e1b_2138, 0x4d2c_6dfc, 0x5338_0d13],
    [0x650a_7354, 0x766a_0abb, 0x81c2_c92e, 0x9272_2c85],
    [0xa2bf_e8a1, 0xa81a_664b, 0xc24b_8b70, 0xc76c_51a3],
    [0xd192_e819, 0xd699_0624, 0xf40e_3585, 0x106a_a070],
    [0x19a4_c116, 0x1e37_6c08, 0x2748_774c, 0x34b0_bcb5],
    [0x391c_0cb3, 0x4ed8_aa4a, 0x5b9c_ca4f, 0x682e_6ff3],
    [0x748f_82ee, 0x78a5_636f, 0x84c8_7814, 0x8cc7_0208],
    [0x90be_fffa, 0xa450_6ceb, 0xbef9_a3f7, 0xc671_78f2],
];

/// Proof that this CPU has the instructions.
#[derive(Clone, Copy)]
pub(crate) struct ShaNi(());

impl ShaNi {
    /// `None` on a CPU without the SHA extensions.
    pub(crate) fn detect() -> Option<Self> {
        (is_x86_feature_detected!("sha")
            && is_x86_feature_detected!("ssse3")
            && is_x86_feature_detected!("sse4.1"))
        .then_some(Self(()))
    }
}

impl Kernel for ShaNi {
    #[inline]
    fn compress<const N: usize>(self, states: &mut [State; N], blocks: [&[Block]; N]) {
        // SAFETY: a `ShaNi` exists only after `detect` has found the features that the function
        // is compiled for.
        unsafe { compress(states, blocks) }
    }
}

#[target_feature(enable = "sha,ssse3,sse4.1")]
fn compress<const N: usize>(states: &mut [State; N], blocks: [&[Block]; N]) {
    let count = blocks.iter().map(|lane| lane.len()).min().unwrap_or(0);
    debug_assert!(blocks.iter().all(|lane| lane.len() == count), "lanes of unequal length");
    let mut abef = [_mm_set_epi64x(0, 0); N];
    let mut cdgh = abef;
    for lane in 0..N {
        (abef[lane], cdgh[lane]) = load_state(&states[lane]);
    }
    for index in 0..count {
        one_block(&mut abef, &mut cdgh, std::array::from_fn(|lane| &blocks[lane][index]));
    }
    for lane in 0..N {
        states[lane] = store_state(abef[lane], cdgh[lane]);
    }
}

#[inline]
#[target_feature(enable = "sha,ssse3,sse4.1")]
fn one_block<const N: usize>(
    abef: &mut [__m128i; N],
    cdgh: &mut [__m128i; N],
    blocks: [&Block; N],
) {
    let (abef_before, cdgh_before) = (*abef, *cdgh);
    let mut w: [[__m128i; N]; 4] = [[_mm_set_epi64x(0, 0); N]; 4];
    for (quarter, words) in w.iter_mut().enumerate() {
        *words = blocks.map(|block| load_words(block, quarter));
    }
    for group in 0..3 {
        rounds_and_schedule::<N, 0>(abef, cdgh, &mut w, 4 * group);
        rounds_and_schedule::<N, 1>(abef, cdgh, &mut w, 4 * group + 1);
        rounds_and_schedule::<N, 2>(abef, cdgh, &mut w, 4 * group + 2);
        rounds_and_schedule::<N, 3>(abef, cdgh, &mut w, 4 * group + 3);
    }
    for (index, words) in w.iter().enumerate() {
        rounds(abef, cdgh, words, 12 + index);
    }
    for lane in 0..N {
        abef[lane] = _mm_add_epi32(abef[lane], abef_before[lane]);
        cdgh[lane] = _mm_add_epi32(cdgh[lane], cdgh_before[lane]);
    }
}

/// Four rounds with the words `w[AT]`, which are then replaced by those of sixteen rounds later.
#[inline]
#[target_feature(enable = "sha,ssse3,sse4.1")]
fn rounds_and_schedule<const N: usize, const AT: usize>(
    abef: &mut [__m128i; N],
    cdgh: &mut [__m128i; N],
    w: &mut [[__m128i; N]; 4],
    group: usize,
) {
    rounds(abef, cdgh, &w[AT], group);
    for lane in 0..N {
        let (w4, w3) = (w[AT][lane], w[(AT + 1) % 4][lane]);
        let (w2, w1) = (w[(AT + 2) % 4][lane], w[(AT + 3) % 4][lane]);
        let sum = _mm_add_epi32(_mm_sha256msg1_epu32(w4, w3), _mm_alignr_epi8::<4>(w1, w2));
        w[AT][lane] = _mm_sha256msg2_epu32(sum, w1);
    }
}

/// Four rounds in every lane.
#[inline]
#[target_feature(enable = "sha,ssse3,sse4.1")]
fn rounds<const N: usize>(
    abef: &mut [__m128i; N],
    cdgh: &mut [__m128i; N],
    words: &[__m128i; N],
    group: usize,
) {
    let k = load(&K[group]);
    let sums = words.map(|words| _mm_add_epi32(words, k));
    for lane in 0..N {
        cdgh[lane] = _mm_sha256rnds2_epu32(cdgh[lane], abef[lane], sums[lane]);
    }
    for lane in 0..N {
        let high = _mm_shuffle_epi32::<0x0e>(sums[lane]);
        abef[lane] = _mm_sha256rnds2_epu32(abef[lane], cdgh[lane], high);
    }
}

/// Sixteen bytes of a block as four big-endian words.
#[inline]
#[target_feature(enable = "sha,ssse3,sse4.1")]
fn load_words(block: &Block, quarter: usize) -> __m128i {
    let swap = _mm_set_epi64x(0x0c0d_0e0f_0809_0a0b, 0x0405_0607_0001_0203);
    let bytes: &[u8; 16] = &block.as_chunks::<16>().0[quarter];
    // SAFETY: the reference is to 16 readable bytes; the load needs no alignment.
    let words = unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) };
    _mm_shuffle_epi8(words, swap)
}

/// `[A, B, C, D, E, F, G, H]` as the registers `ABEF` and `CDGH`.
#[inline]
#[target_feature(enable = "sha,ssse3,sse4.1")]
fn load_state(state: &State) -> (__m128i, __m128i) {
    let halves = state.as_chunks::<4>().0;
    let cdab = _mm_shuffle_epi32::<0xb1>(load(&halves[0]));
    let efgh = _mm_shuffle_epi32::<0x1b>(load(&halves[1]));
    (_mm_alignr_epi8::<8>(cdab, efgh), _mm_blend_epi16::<0xf0>(efgh, cdab))
}

/// The inverse of [`load_state`].
#[inline]
#[target_feature(enable = "sha,ssse3,sse4.1")]
fn store_state(abef: __m128i, cdgh: __m128i) -> State {
    let feba = _mm_shuffle_epi32::<0x1b>(abef);
    let dchg = _mm_shuffle_epi32::<0xb1>(cdgh);
    let mut state = [0; 8];
    let halves = state.as_chunks_mut::<4>().0;
    store(&mut halves[0], _mm_blend_epi16::<0xf0>(feba, dchg));
    store(&mut halves[1], _mm_alignr_epi8::<8>(dchg, feba));
    state
}

#[inline]
#[target_feature(enable = "sha,ssse3,sse4.1")]
fn load(words: &[u32; 4]) -> __m128i {
    // SAFETY: the reference is to 16 readable bytes; the load needs no alignment.
    unsafe { _mm_loadu_si128(words.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "sha,ssse3,sse4.1")]
fn store(words: &mut [u32; 4], register: __m128i) {
    // SAFETY: the reference is to 16 writable bytes; the store needs no alignment.
    unsafe { _mm_storeu_si128(words.as_mut_ptr().cast(), register) }
}

//! Outputs that need no signature: their spends need the right script, or the right time.
//!
//! | output | spent by |
//! |---|---|
//! | P2SH, P2WSH | showing the script |
//! | P2TR | showing a script of the tree and its place there |
//! | P2A, the anchor | an empty witness |
//! | anyone's, four times | lock time by height, by time, relative by height, by time |
//! | `OP_CHECKLOCKTIMEVERIFY`, by height and by time | the lock time that it requires |
//! | `OP_CHECKSEQUENCEVERIFY`, by height and by time | the sequence that it requires |

use bitcoin::key::{Secp256k1, UntweakedPublicKey};
use bitcoin::opcodes::{Opcode, all as op};
use bitcoin::script::Builder;
use bitcoin::taproot::{LeafVersion, TaprootBuilder};
use bitcoin::{ScriptBuf, Sequence, Witness, absolute::LockTime};

use super::{SPACING, anyone};

/// A relative lock time counts units of 512 seconds.
const TIME_UNITS: u32 = 1 << 22;
/// All lock times have passed after this many blocks.
pub(super) const DUE: u32 = 12;

/// An output, and what its spend needs.
pub(super) struct Keyless {
    pub(super) script_pubkey: ScriptBuf,
    pub(super) script_sig: ScriptBuf,
    pub(super) witness: Witness,
    pub(super) sequence: Sequence,
    pub(super) lock_time: LockTime,
}

impl Keyless {
    fn new(script_pubkey: ScriptBuf) -> Self {
        Self {
            script_pubkey,
            script_sig: ScriptBuf::new(),
            witness: Witness::new(),
            sequence: Sequence::ENABLE_LOCKTIME_NO_RBF,
            lock_time: LockTime::ZERO,
        }
    }

    /// All of them, on a chain that ends at this height and time. `key` can spend the taproot one
    /// too, and does not.
    pub(super) fn all(key: UntweakedPublicKey, height: u32, time: u64) -> Vec<Self> {
        let mut all = vec![
            Self {
                script_sig: ScriptBuf::from_bytes(vec![1, 0x51]),
                ..Self::new(ScriptBuf::new_p2sh(&anyone().script_hash()))
            },
            Self {
                witness: Witness::from_slice(&[anyone().into_bytes()]),
                ..Self::new(ScriptBuf::new_p2wsh(&anyone().wscript_hash()))
            },
            script_path(key),
            Self::new(ScriptBuf::from_bytes(vec![0x51, 0x02, 0x4e, 0x73])),
        ];
        let due_time = u32::try_from(time + 4 * SPACING).unwrap();
        let locks =
            [LockTime::from_height(height + 8).unwrap(), LockTime::from_time(due_time).unwrap()];
        for lock_time in locks {
            let number = lock_time.to_consensus_u32();
            let checked = checking(number, op::OP_CLTV);
            for script in [anyone(), checked] {
                all.push(Self { lock_time, ..Self::new(script) });
            }
        }
        for number in [5, TIME_UNITS | 3] {
            let sequence = Sequence::from_consensus(number);
            for script in [anyone(), checking(number, op::OP_CSV)] {
                all.push(Self { sequence, ..Self::new(script) });
            }
        }
        all
    }
}

/// A script that requires a lock time or a sequence, and nothing else.
fn checking(number: u32, opcode: Opcode) -> ScriptBuf {
    let script = Builder::new().push_int(i64::from(number)).push_opcode(opcode);
    script.push_opcode(op::OP_DROP).push_int(1).into_script()
}

fn script_path(key: UntweakedPublicKey) -> Keyless {
    let tree = TaprootBuilder::with_huffman_tree([
        (1, anyone()),
        (2, checking(9, op::OP_CSV)),
        (1, ScriptBuf::new()),
    ]);
    let tree = tree.unwrap().finalize(&Secp256k1::new(), key).unwrap();
    let control = tree.control_block(&(anyone(), LeafVersion::TapScript)).unwrap();
    Keyless {
        witness: Witness::from_slice(&[anyone().into_bytes(), control.serialize()]),
        ..Keyless::new(ScriptBuf::new_p2tr_tweaked(tree.output_key()))
    }
}

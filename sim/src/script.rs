//! Scripts as four bytes.
//!
//! The simulator stores no script with a coin. A script is its kind, whether the pool of keys can
//! sign for it, and a number; the bytes are derived when they are written:
//!
//! ```text
//!  31    28  27   26                         0
//! ┌────────┬─────┬────────────────────────────┐
//! │  kind  │ key │             id             │
//! └────────┴─────┴────────────────────────────┘
//! ```
//!
//! With the `key` bit set, `id` is an index into [`Keys`] and spends carry real signatures.
//! Without it the hash or key inside the script is `mix(seed, kind, id)`: nobody can sign for it,
//! and spends carry dummies of the same size.

use crate::keys::Keys;
use crate::rng::mix;

/// The kinds of script that the simulator pays to and spends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    P2wpkh,
    /// Spent by the key path.
    P2tr,
    /// P2TR spent by a script path whose leaf holds an inscription.
    Inscription,
    P2pkh,
    /// P2WPKH inside P2SH.
    P2shWpkh,
    /// 2 of 3 inside P2SH.
    P2shMultisig,
    /// 2 of 3 inside P2WSH.
    P2wsh,
    /// Pay to anchor: anyone can spend it with nothing.
    P2a,
    P2pk,
    /// Bare 1 of 2.
    Multisig,
}

const KINDS: [Kind; 10] = [
    Kind::P2wpkh,
    Kind::P2tr,
    Kind::Inscription,
    Kind::P2pkh,
    Kind::P2shWpkh,
    Kind::P2shMultisig,
    Kind::P2wsh,
    Kind::P2a,
    Kind::P2pk,
    Kind::Multisig,
];

impl Kind {
    /// Does an input of this kind keep its signature in the witness?
    pub(crate) const fn has_witness(self) -> bool {
        matches!(self, Self::P2wpkh | Self::P2tr | Self::Inscription | Self::P2shWpkh | Self::P2wsh)
    }

    /// The maximum weight of a spending input, without the content of an inscription.
    pub(crate) const fn input_weight(self) -> u32 {
        // 41 bytes of outpoint, sequence and script length, and the empty witness count.
        let outpoint = 41 * 4 + 1;
        outpoint
            + match self {
                Self::P2wpkh => 108,
                Self::P2tr => 66,
                Self::Inscription => 66 + 34 + 80,
                Self::P2pkh => 108 * 4,
                Self::P2shWpkh => 23 * 4 + 108,
                Self::P2shMultisig => (2 + 2 * 74 + 107) * 4,
                Self::P2wsh => 3 + 2 * 73 + 106,
                Self::P2a => 0,
                Self::P2pk | Self::Multisig => 75 * 4,
            }
    }

    /// Signature operations charged where this kind is paid to, in BIP141's cost.
    pub(crate) const fn output_sigops(self) -> u32 {
        match self {
            Self::P2pkh | Self::P2pk => 4,
            Self::Multisig => 80,
            _ => 0,
        }
    }

    /// Signature operations charged where this kind is spent, in BIP141's cost.
    pub(crate) const fn input_sigops(self) -> u32 {
        match self {
            Self::P2wpkh | Self::P2shWpkh => 1,
            Self::P2wsh => 3,
            Self::P2shMultisig => 12,
            _ => 0,
        }
    }
}

const KEY_BIT: u32 = 1 << 27;
const ID_MASK: u32 = KEY_BIT - 1;

/// A script, without its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Script(u32);

impl Script {
    /// The largest number of a script.
    pub(crate) const MAX_ID: u32 = ID_MASK;

    /// A script that the pool's key `index` signs for.
    pub(crate) const fn signed(kind: Kind, index: u32) -> Self {
        Self((kind as u32) << 28 | KEY_BIT | (index & ID_MASK))
    }

    /// A script that nobody can sign for.
    pub(crate) const fn dummy(kind: Kind, id: u32) -> Self {
        Self((kind as u32) << 28 | (id & ID_MASK))
    }

    pub(crate) fn kind(self) -> Kind {
        *KINDS.get((self.0 >> 28) as usize).expect("constructors take a kind")
    }

    /// The key that signs for it, if any.
    pub(crate) const fn key(self) -> Option<u32> {
        if self.0 & KEY_BIT == 0 { None } else { Some(self.0 & ID_MASK) }
    }

    /// The bytes that stand for a key or a hash in a script that nobody can sign for.
    pub(crate) fn program(self, seed: u64) -> [u8; 32] {
        mix(seed.rotate_left(32) ^ u64::from(self.0))
    }

    /// Appends the script's bytes.
    pub(crate) fn write(self, keys: &Keys, out: &mut Vec<u8>) {
        match self.key() {
            Some(index) => self.write_signed(keys, index, out),
            None => self.write_dummy(&self.program(keys.seed()), out),
        }
    }

    fn write_signed(self, keys: &Keys, index: u32, out: &mut Vec<u8>) {
        match self.kind() {
            Kind::P2wpkh => push_program(&[0x00, 20], &keys.key(index).hash, &[], out),
            Kind::P2tr => push_program(&[0x51, 32], &keys.taproot(index).output, &[], out),
            Kind::Inscription => {
                push_program(&[0x51, 32], &keys.inscription(index).output, &[], out);
            }
            Kind::P2pkh => {
                push_program(&[0x76, 0xa9, 20], &keys.key(index).hash, &[0x88, 0xac], out);
            }
            Kind::P2shWpkh => {
                push_program(&[0xa9, 20], &keys.scripts(index).nested_wpkh, &[0x87], out);
            }
            Kind::P2shMultisig => {
                push_program(&[0xa9, 20], &keys.scripts(index).multisig_sh, &[0x87], out);
            }
            Kind::P2wsh => push_program(&[0x00, 32], &keys.scripts(index).multisig_wsh, &[], out),
            Kind::P2a => out.extend_from_slice(&ANCHOR),
            Kind::P2pk => push_program(&[33], &keys.key(index).public, &[0xac], out),
            Kind::Multisig => {
                push_program(&[0x51, 33], &keys.key(index).public, &[33], out);
                push_program(&[], &keys.key(index + 1).public, &[0x52, 0xae], out);
            }
        }
    }

    fn write_dummy(self, program: &[u8; 32], out: &mut Vec<u8>) {
        let (hash, _) = program.split_at(20);
        match self.kind() {
            Kind::P2wpkh => push_program(&[0x00, 20], hash, &[], out),
            Kind::P2tr | Kind::Inscription => push_program(&[0x51, 32], program, &[], out),
            Kind::P2pkh => push_program(&[0x76, 0xa9, 20], hash, &[0x88, 0xac], out),
            Kind::P2shWpkh | Kind::P2shMultisig => push_program(&[0xa9, 20], hash, &[0x87], out),
            Kind::P2wsh => push_program(&[0x00, 32], program, &[], out),
            Kind::P2a => out.extend_from_slice(&ANCHOR),
            Kind::P2pk => push_program(&[33, 0x02], program, &[0xac], out),
            Kind::Multisig => {
                push_program(&[0x51, 33, 0x02], program, &[], out);
                push_program(&[33, 0x03], program, &[0x52, 0xae], out);
            }
        }
    }
}

/// Pay to anchor: witness version 1 and two bytes that spell "fees" in Bech32m.
const ANCHOR: [u8; 4] = [0x51, 0x02, 0x4e, 0x73];

fn push_program(head: &[u8], program: &[u8], tail: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(head);
    out.extend_from_slice(program);
    out.extend_from_slice(tail);
}

/// Appends one push of `data` in its shortest form.
pub(crate) fn push_data(data: &[u8], out: &mut Vec<u8>) {
    push_len(data.len(), out);
    out.extend_from_slice(data);
}

/// Appends the opcode of a push of `len` bytes, which the caller appends itself.
pub(crate) fn push_len(len: usize, out: &mut Vec<u8>) {
    let len = u32::try_from(len).expect("no push here reaches 4 GiB");
    let [low, high, ..] = len.to_le_bytes();
    match len {
        0..=75 => out.push(low),
        76..=0xff => out.extend_from_slice(&[0x4c, low]),
        0x100..=0xffff => out.extend_from_slice(&[0x4d, low, high]),
        _ => {
            out.push(0x4e);
            out.extend_from_slice(&len.to_le_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use bitcoin::Script as Parsed;

    use super::*;

    #[test]
    fn every_kind_is_what_its_name_says() {
        let keys = Keys::new(3, crate::Profile::Mainnet.table());
        for kind in KINDS {
            for script in [Script::signed(kind, 5), Script::dummy(kind, 5)] {
                let mut bytes = Vec::new();
                script.write(&keys, &mut bytes);
                let parsed = Parsed::from_bytes(&bytes);
                let right = match kind {
                    Kind::P2wpkh => parsed.is_p2wpkh(),
                    Kind::P2tr | Kind::Inscription => parsed.is_p2tr(),
                    Kind::P2pkh => parsed.is_p2pkh(),
                    Kind::P2shWpkh | Kind::P2shMultisig => parsed.is_p2sh(),
                    Kind::P2wsh => parsed.is_p2wsh(),
                    Kind::P2a => parsed.is_witness_program() && bytes.len() == 4,
                    Kind::P2pk => bytes.len() == 35,
                    Kind::Multisig => parsed.is_multisig(),
                };
                assert!(right, "{kind:?} {script:?}");
                assert_eq!(script.kind(), kind);
            }
        }
    }
}

//! The opcodes that this crate needs by name.

/// Pushes nothing.
pub const OP_0: u8 = 0x00;
/// Pushes data whose length follows as one byte. Smaller opcodes are the length themselves.
pub const OP_PUSHDATA1: u8 = 0x4c;
/// Pushes data whose length follows as two bytes.
pub const OP_PUSHDATA2: u8 = 0x4d;
/// Pushes data whose length follows as four bytes.
pub const OP_PUSHDATA4: u8 = 0x4e;
/// Pushes the number 1; the opcodes up to [`OP_16`] push the numbers up to 16.
pub const OP_1: u8 = 0x51;
/// Pushes the number 16.
pub const OP_16: u8 = 0x60;
/// Begins the other branch of a condition.
pub(crate) const OP_ELSE: u8 = 0x67;
/// Ends the script: on Bitcoin as a failure.
pub const OP_RETURN: u8 = 0x6a;
/// Copies the top of the stack.
pub(crate) const OP_DUP: u8 = 0x76;
/// Compares the two top elements.
pub const OP_EQUAL: u8 = 0x87;
/// Compares the two top elements and fails when they differ.
pub(crate) const OP_EQUALVERIFY: u8 = 0x88;
/// RIPEMD-160 of SHA-256.
pub const OP_HASH160: u8 = 0xa9;
/// Checks a signature.
pub const OP_CHECKSIG: u8 = 0xac;
/// Checks m of n signatures.
pub const OP_CHECKMULTISIG: u8 = 0xae;

//! A coin as stored in a page: the encoding of Core's coin database.
//!
//! ```text
//! │ VARINT(height · 2 + coinbase) │ VARINT(compressed amount) │ compressed script │
//! ```
//!
//! Merges copy these bytes and never decode more than the height: unpacking the rarest kind of
//! script (an uncompressed public key) takes a square root on the curve.

use varve_types::{Amount, Coin, DecodeError, Height, Reader, compress, varint};

/// A coin in its packed form. The bytes are validated only when they are unpacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackedCoin<'a>(&'a [u8]);

/// A coin without its script, which was appended to the unpacker's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoinHead {
    /// The height of the block that created it.
    pub height: Height,
    /// Whether a coinbase transaction created it.
    pub coinbase: bool,
    /// The amount.
    pub value: Amount,
}

impl CoinHead {
    /// The whole coin.
    #[must_use]
    pub const fn with_script(self, script: &[u8]) -> Coin<'_> {
        let Self { height, coinbase, value } = self;
        Coin { height, coinbase, value, script }
    }
}

/// Appends the packed form of `coin`. An amount beyond [`Amount::MAX_MONEY`] may not round-trip.
pub fn pack(coin: &Coin<'_>, out: &mut Vec<u8>) {
    varint::write(coin.code(), out);
    compress::write_output(coin.value, coin.script, out);
}

impl<'a> PackedCoin<'a> {
    /// Takes bytes for a packed coin.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The packed bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.0
    }

    /// The height and the coinbase flag.
    pub fn code(&self) -> Result<(Height, bool), DecodeError> {
        read_code(&mut Reader::new(self.0))
    }

    /// Unpacks the coin, appending its script to `script`.
    pub fn unpack(&self, script: &mut Vec<u8>) -> Result<CoinHead, DecodeError> {
        let mut reader = Reader::new(self.0);
        let (height, coinbase) = read_code(&mut reader)?;
        let value = compress::read_output(&mut reader, script)?;
        reader.end()?;
        Ok(CoinHead { height, coinbase, value })
    }
}

fn read_code(reader: &mut Reader<'_>) -> Result<(Height, bool), DecodeError> {
    let code = varint::read(reader, "height and coinbase")?;
    let height = u32::try_from(code >> 1);
    let too_large = |_| reader.error(varve_types::DecodeErrorKind::VarintTooLarge);
    Ok((Height::new(height.map_err(too_large)?), code & 1 == 1))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn round_trips(
            height: u32,
            coinbase: bool,
            value in 0..=Amount::MAX_MONEY.to_sat(),
            script in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let coin = Coin {
                height: Height::new(height),
                coinbase,
                value: Amount::from_sat(value),
                script: &script,
            };
            let mut bytes = Vec::new();
            pack(&coin, &mut bytes);
            let mut found = Vec::new();
            let head = PackedCoin::new(&bytes).unpack(&mut found).unwrap();
            prop_assert_eq!(head.with_script(&found), coin);
            prop_assert_eq!(PackedCoin::new(&bytes).code(), Ok((coin.height, coinbase)));
            bytes.push(0);
            prop_assert!(PackedCoin::new(&bytes).unpack(&mut found).is_err());
        }

        #[test]
        fn hostile_bytes_are_an_error_or_a_coin(
            bytes in prop::collection::vec(any::<u8>(), 0..80),
        ) {
            let _ = PackedCoin::new(&bytes).unpack(&mut Vec::new());
            let _ = PackedCoin::new(&bytes).code();
        }
    }
}

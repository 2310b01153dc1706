//! A coin without allocations: short scripts are stored beside the amount.

use anyhow::{Result, ensure};
use varve_types::{Amount, Coin, Height};

const SCRIPT_MAX: usize = 35;

/// A coin in 48 bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InlineCoin {
    satoshi: u64,
    code: u32,
    len: u8,
    script: [u8; SCRIPT_MAX],
}

const _: () = assert!(size_of::<InlineCoin>() == 48);

impl InlineCoin {
    pub(crate) fn of(coin: &Coin<'_>) -> Result<Self> {
        let len = coin.script.len();
        ensure!(len <= SCRIPT_MAX, "a script of {len} bytes in the work; {SCRIPT_MAX} are room");
        let mut script = [0; SCRIPT_MAX];
        script.iter_mut().zip(coin.script).for_each(|(place, byte)| *place = *byte);
        let (satoshi, code) = (coin.value.to_sat(), u32::try_from(coin.code())?);
        Ok(Self { satoshi, code, len: u8::try_from(len)?, script })
    }

    pub(crate) const fn satoshi(&self) -> u64 {
        self.satoshi
    }

    pub(crate) fn script(&self) -> &[u8] {
        self.script.get(..usize::from(self.len)).unwrap_or_default()
    }

    pub(crate) fn as_coin(&self) -> Coin<'_> {
        let (height, value) = (Height::new(self.code >> 1), Amount::from_sat(self.satoshi));
        Coin { height, coinbase: self.code & 1 == 1, value, script: self.script() }
    }
}

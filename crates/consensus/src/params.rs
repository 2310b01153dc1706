//! What differs between the chains: heights, limits, exceptions.
//!
//! | | mainnet | testnet3 | testnet4 | signet | regtest | bsv | bsv-regtest |
//! |---|---|---|---|---|---|---|---|
//! | BIP34, height in the coinbase | 227,931 | 21,111 | 1 | 1 | 1 | 227,931 | never |
//! | BIP66, strict DER | 363,725 | 330,776 | 1 | 1 | 1 | 363,725 | 1,251 |
//! | BIP65, CLTV | 388,381 | 581,885 | 1 | 1 | 1 | 388,381 | 1,351 |
//! | BIP68, 112, 113, CSV | 419,328 | 770,112 | 1 | 1 | 1 | 419,328 | 576 |
//! | segwit | 481,824 | 834,624 | 1 | 1 | 0 | never | never |
//! | retarget | 2,016 | 2,016 | 2,016 | 2,016 | none | EDA, DAA | none |
//! | minimum-difficulty blocks | no | yes | yes, BIP94 | no | yes | no | no |
//! | work of the known chain, log2 | 96.1 | 76.6 | 75.3 | 43.5 | 0 | 87.3 | 0 |
//!
//! The fields are public: a test chain may set its own. The rules of BSV that are not parameters
//! are in the modules that apply them, and all of them in `docs/adr/0004-bsv-rules.md`.

use varve_types::{BlockHash, Height, Network};

use crate::script::ScriptFlags;
use crate::work::{Target, Work};

/// A height that no chain reaches: the rule does not apply.
const NEVER: Height = Height::new(u32::MAX);

/// The rules of one chain.
#[derive(Clone, Debug)]
pub struct Params {
    /// The chain.
    pub network: Network,
    /// How the difficulty moves.
    pub pow: PowParams,
    /// From which heights on the upgrades apply.
    pub heights: UpgradeHeights,
    /// The known chain has at least this much work. Below it headers from peers are not stored, and
    /// nothing is assumed to be valid.
    pub minimum_work: Work,
    /// How many blocks below its spender a coinbase must be.
    pub coinbase_maturity: u32,
    /// The block at the height of BIP34 on the known chain: above it no transaction can repeat
    /// another until [`bip30_again`](Self::bip30_again), so BIP30 need not be checked.
    pub bip34_hash: Option<BlockHash>,
    /// From this height on a coinbase may repeat one from before BIP34.
    pub bip30_again: Height,
    /// Blocks that are allowed to repeat an older coinbase.
    pub bip30_exceptions: Vec<(Height, BlockHash)>,
    /// Blocks whose scripts are checked with these flags instead of P2SH, WITNESS and TAPROOT.
    pub script_exceptions: Vec<(BlockHash, ScriptFlags)>,
    /// The script that the solution of a signet block must satisfy (BIP325).
    pub signet_challenge: Option<Vec<u8>>,
    /// A block whose history is known to be valid: scripts below it need not be checked.
    pub assume_valid: Option<BlockHash>,
    /// The largest block in bytes. It applies to BSV only, where each node sets its own; on Bitcoin
    /// the weight is limited.
    pub max_block_size: u64,
}

/// How the difficulty moves.
#[derive(Clone, Copy, Debug)]
pub struct PowParams {
    /// The easiest target.
    pub limit: Target,
    /// Seconds between two blocks.
    pub spacing: u32,
    /// Blocks between two adjustments.
    pub interval: u32,
    /// The target never moves.
    pub no_retarget: bool,
    /// A block 20 minutes after its parent may have the easiest target.
    pub min_difficulty: bool,
    /// BIP94: adjust from the first block of a period, and refuse time warps.
    pub bip94: bool,
    /// BSV: the emergency adjustment applies, and above this parent height the moving average.
    pub daa_height: Option<Height>,
}

impl PowParams {
    /// Seconds that a period should take.
    pub(crate) const fn timespan(&self) -> u32 {
        self.spacing * self.interval
    }
}

/// From which heights on the upgrades apply.
#[derive(Clone, Copy, Debug)]
pub struct UpgradeHeights {
    /// The coinbase begins with the height.
    pub bip34: Height,
    /// Signatures are strict DER.
    pub bip66: Height,
    /// `OP_CHECKLOCKTIMEVERIFY`.
    pub bip65: Height,
    /// Relative lock times, `OP_CHECKSEQUENCEVERIFY`, and median time for absolute ones.
    pub csv: Height,
    /// Witnesses.
    pub segwit: Height,
}

impl UpgradeHeights {
    const fn new(bip34: u32, bip66: u32, bip65: u32, csv: u32, segwit: u32) -> Self {
        Self {
            bip34: Height::new(bip34),
            bip66: Height::new(bip66),
            bip65: Height::new(bip65),
            csv: Height::new(csv),
            segwit: Height::new(segwit),
        }
    }
}

const SIGNET_LIMIT_BITS: u32 = 0x1e03_77ae;
const BIP34_MAINNET: &str = "000000000000024b89b42a942fe0d9fea3bb44ab7bd1b19115dd6a759c0808b8";
const BIP34_TESTNET3: &str = "0000000023b3a96d3484e5abb3755c413e7d41500f8e2a5c3f0dd01299cd8ef8";
const REPEAT_91842: &str = "00000000000a4d0a398161ffc163c503763b1f4360639393e0e4c8e300e0caec";
const REPEAT_91880: &str = "00000000000743f190a18c5577a3c2d2a1f610ae9601ac046a38084ccb7cd721";
const NO_P2SH_MAINNET: &str = "00000000000002dc756eebf4f49723ed8d30cc28a5f108eb94b1ba88ac4f9c22";
const NO_TAPROOT: &str = "0000000000000000000f14c35b2d841e986ab5441de8c585d5ffe55ea1e395ad";
const NO_P2SH_TESTNET3: &str = "00000000dd30457c001f4095d208cc1296b0eed002427aa599874af7a432b105";

/// `1 <key> <key> 2 CHECKMULTISIG` of the default signet.
const SIGNET_CHALLENGE: [u8; 71] = *b"\x51\
    \x21\x03\xad\x5e\x0e\xda\xd1\x8c\xb1\xf0\xfc\x0d\x28\xa3\xd4\xf1\xf3\xe4\x45\x64\x03\x37\x48\
    \x9a\xbb\x10\x40\x4f\x2d\x1e\x08\x6b\xe4\x30\
    \x21\x03\x59\xef\x50\x21\x96\x4f\xe2\x2d\x6f\x8e\x05\xb2\x46\x3c\x95\x40\xce\x96\x88\x3f\xe3\
    \xb2\x78\x76\x0f\x04\x8f\x51\x89\xf2\xe6\xc4\
    \x52\xae";

impl Params {
    /// The rules of this chain.
    #[must_use]
    pub fn new(network: Network) -> Self {
        let bitcoin = matches!(network, Network::Mainnet | Network::Bsv);
        Self {
            network,
            pow: pow(network),
            heights: heights(network),
            minimum_work: minimum_work(network),
            coinbase_maturity: 100,
            bip34_hash: match network {
                Network::Mainnet | Network::Bsv => Some(hash(BIP34_MAINNET)),
                Network::Testnet3 => Some(hash(BIP34_TESTNET3)),
                _ => None,
            },
            bip30_again: if network.is_bsv() { NEVER } else { Height::new(1_983_702) },
            bip30_exceptions: match bitcoin {
                true => vec![
                    (Height::new(91_842), hash(REPEAT_91842)),
                    (Height::new(91_880), hash(REPEAT_91880)),
                ],
                false => Vec::new(),
            },
            script_exceptions: match network {
                Network::Mainnet => vec![
                    (hash(NO_P2SH_MAINNET), ScriptFlags::NONE),
                    (hash(NO_TAPROOT), ScriptFlags::P2SH | ScriptFlags::WITNESS),
                ],
                Network::Testnet3 => vec![(hash(NO_P2SH_TESTNET3), ScriptFlags::NONE)],
                _ => Vec::new(),
            },
            signet_challenge: (network == Network::Signet).then(|| SIGNET_CHALLENGE.to_vec()),
            assume_valid: assume_valid(network),
            max_block_size: u64::from(u32::MAX),
        }
    }

    /// Whether a height is at or above BSV's Genesis upgrade.
    #[must_use]
    pub(crate) fn is_genesis_upgraded(&self, height: Height) -> bool {
        self.network.genesis_upgrade().is_some_and(|upgrade| height >= upgrade)
    }

    /// Whether BIP68 holds at this height. The Genesis upgrade of BSV revoked it.
    #[must_use]
    pub fn has_relative_lock_times(&self, height: Height) -> bool {
        height >= self.heights.csv && !self.is_genesis_upgraded(height)
    }
}

/// The least work of the best chain, as built into Bitcoin Core 31. For BSV it is that node's
/// figure, from before it split from Bitcoin Cash, so it does not distinguish the two.
fn minimum_work(network: Network) -> Work {
    let digits = match network {
        Network::Mainnet => "0000000000000000000000000000000000000001128750f82f4c366153a3a030",
        Network::Testnet3 => "0000000000000000000000000000000000000000000017dde1c649f3708d14b6",
        Network::Testnet4 => "0000000000000000000000000000000000000000000009a0fe15d0177d086304",
        Network::Signet => "00000000000000000000000000000000000000000000000000000b463ea0a4b8",
        Network::Bsv => "000000000000000000000000000000000000000000a0f3064330647e2f6c4828",
        Network::Regtest | Network::BsvRegtest => return Work::ZERO,
    };
    // A hash is written like the number: 64 digits, the most significant first.
    Work::from_le_bytes(hash(digits).as_bytes())
}

/// A block that is known to be valid with all below it: as built into Bitcoin Core 31, at the
/// heights 938,343, 4,842,348, 123,613 and 293,175.
fn assume_valid(network: Network) -> Option<BlockHash> {
    let digits = match network {
        Network::Mainnet => "00000000000000000000ccebd6d74d9194d8dcdc1d177c478e094bfad51ba5ac",
        Network::Testnet3 => "000000007a61e4230b28ac5cb6b5e5a0130de37ac1faf2f8987d2fa6505b67f4",
        Network::Testnet4 => "0000000002368b1e4ee27e2e85676ae6f9f9e69579b29093e9a82c170bf7cf8a",
        Network::Signet => "00000008414aab61092ef93f1aacc54cf9e9f16af29ddad493b908a01ff5c329",
        Network::Regtest | Network::Bsv | Network::BsvRegtest => return None,
    };
    Some(hash(digits))
}

fn pow(network: Network) -> PowParams {
    let limit = match network {
        Network::Signet => Target::from_bits(SIGNET_LIMIT_BITS),
        // 2^255 − 1 and 2^224 − 1: more than compact form can express.
        Network::Regtest | Network::BsvRegtest => ones(255),
        _ => ones(224),
    };
    let regtest = matches!(network, Network::Regtest | Network::BsvRegtest);
    PowParams {
        limit: limit.expect("no limit is zero"),
        spacing: 600,
        interval: if network == Network::Regtest { 144 } else { 2016 },
        no_retarget: regtest,
        min_difficulty: matches!(network, Network::Testnet3 | Network::Testnet4 | Network::Regtest),
        bip94: network == Network::Testnet4,
        daa_height: (network == Network::Bsv).then_some(Height::new(504_031)),
    }
}

fn heights(network: Network) -> UpgradeHeights {
    let never = u32::MAX;
    match network {
        Network::Mainnet => UpgradeHeights::new(227_931, 363_725, 388_381, 419_328, 481_824),
        Network::Testnet3 => UpgradeHeights::new(21_111, 330_776, 581_885, 770_112, 834_624),
        Network::Testnet4 | Network::Signet => UpgradeHeights::new(1, 1, 1, 1, 1),
        Network::Regtest => UpgradeHeights::new(1, 1, 1, 1, 0),
        Network::Bsv => UpgradeHeights::new(227_931, 363_725, 388_381, 419_328, never),
        Network::BsvRegtest => UpgradeHeights::new(never, 1_251, 1_351, 576, never),
    }
}

/// The number with this many of its lowest bits set.
fn ones(count: usize) -> Option<Target> {
    let mut bytes = [0; 32];
    let whole = count / 8;
    bytes.iter_mut().rev().take(whole).for_each(|byte| *byte = 0xff);
    if let Some(byte) = bytes.iter_mut().rev().nth(whole) {
        *byte = (1 << (count % 8)) - 1;
    }
    Target::from_be_bytes(bytes)
}

fn hash(text: &str) -> BlockHash {
    text.parse().expect("the constants are hashes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_those_of_the_genesis_blocks() {
        for network in Network::ALL {
            let block = network.genesis_block();
            let header = varve_types::Header::new(block.first_chunk().unwrap());
            let limit = Params::new(network).pow.limit;
            assert_eq!(limit.to_bits(), header.bits(), "{network}");
            assert!(limit.is_met_by(&header.hash()));
        }
        assert_eq!(Params::new(Network::Mainnet).pow.limit.to_bits(), 0x1d00_ffff);
    }

    #[test]
    fn minimum_work_is_more_than_that_of_the_first_blocks() {
        for network in Network::ALL {
            let Params { minimum_work, pow, .. } = Params::new(network);
            let regtest = matches!(network, Network::Regtest | Network::BsvRegtest);
            let first = Work::of(pow.limit).times(100_000);
            assert_eq!(minimum_work > first, !regtest, "{network}");
        }
        let shown = "0000000000000000000000000000000000000001128750f82f4c366153a3a030";
        assert_eq!(Params::new(Network::Mainnet).minimum_work.to_string(), shown);
    }

    #[test]
    fn assumed_blocks_have_the_proof_of_work_of_their_network() {
        for network in Network::ALL {
            let Params { assume_valid, pow, .. } = Params::new(network);
            assert!(assume_valid.is_none_or(|hash| pow.limit.is_met_by(&hash)), "{network}");
        }
    }

    #[test]
    fn the_signet_challenge_gives_the_magic() {
        let mut bytes = vec![u8::try_from(SIGNET_CHALLENGE.len()).unwrap()];
        bytes.extend_from_slice(&SIGNET_CHALLENGE);
        assert_eq!(varve_types::sha256d(&bytes)[..4], Network::Signet.disk_magic());
    }
}

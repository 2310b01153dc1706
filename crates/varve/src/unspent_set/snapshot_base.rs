//! The base blocks of the snapshot files that are in circulation.
//!
//! A snapshot file names its base block by hash and has no checksum. Bitcoin Core therefore has a
//! list built in: the height of each base that it accepts, and the hash of the set there. These are
//! the bases of Core 31. A file of one of them needs no height, and its coins are checked.

use varve_types::{BlockHash, Network};

/// The height and the set hash of one base block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SnapshotBase {
    network: Network,
    pub(super) height: u32,
    block: &'static str,
    /// `hash_serialized_3` of the set.
    pub(super) set_hash: &'static str,
}

impl SnapshotBase {
    /// The base with this hash; `None` when it is not in the list.
    pub(super) fn find(network: Network, block: BlockHash) -> Option<&'static Self> {
        let block = block.to_string();
        BASES.iter().find(|base| base.network == network && base.block == block)
    }
}

const fn base(
    network: Network,
    height: u32,
    block: &'static str,
    set_hash: &'static str,
) -> SnapshotBase {
    SnapshotBase { network, height, block, set_hash }
}

const BASES: &[SnapshotBase] = &[
    base(
        Network::Mainnet,
        840_000,
        "0000000000000000000320283a032748cef8227873ff4872689bf23f1cda83a5",
        "a2a5521b1b5ab65f67818e5e8eccabb7171a517f9e2382208f77687310768f96",
    ),
    base(
        Network::Mainnet,
        880_000,
        "000000000000000000010b17283c3c400507969a9c2afd1dcf2082ec5cca2880",
        "dbd190983eaf433ef7c15f78a278ae42c00ef52e0fd2a54953782175fbadcea9",
    ),
    base(
        Network::Mainnet,
        910_000,
        "0000000000000000000108970acb9522ffd516eae17acddcb1bd16469194a821",
        "4daf8a17b4902498c5787966a2b51c613acdab5df5db73f196fa59a4da2f1568",
    ),
    base(
        Network::Mainnet,
        935_000,
        "0000000000000000000147034958af1652b2b91bba607beacc5e72a56f0fb5ee",
        "e4b90ef9eae834f56c4b64d2d50143cee10ad87994c614d7d04125e2a6025050",
    ),
    base(
        Network::Testnet3,
        2_500_000,
        "0000000000000093bcb68c03a9a168ae252572d348a2eaeba2cdf9231d73206f",
        "f841584909f68e47897952345234e37fcd9128cd818f41ee6c3ca68db8071be7",
    ),
    base(
        Network::Testnet3,
        4_840_000,
        "00000000000000f4971a7fb37fbdff89315b69a2e1920c467654a382f0d64786",
        "ce6bb677bb2ee9789c4a1c9d73e6683c53fc20e8fdbedbdaaf468982a0c8db2a",
    ),
    base(
        Network::Testnet4,
        90_000,
        "0000000002ebe8bcda020e0dd6ccfbdfac531d2f6a81457191b99fc2df2dbe3b",
        "784fb5e98241de66fdd429f4392155c9e7db5c017148e66e8fdbc95746f8b9b5",
    ),
    base(
        Network::Testnet4,
        120_000,
        "000000000bd2317e51b3c5794981c35ba894ce27d3e772d5c39ecd9cbce01dc8",
        "10b05d05ad468d0971162e1b222a4aa66caca89da2bb2a93f8f37fb29c4794b0",
    ),
    base(
        Network::Signet,
        160_000,
        "0000003ca3c99aff040f2563c2ad8f8ec88bd0fd6b8f0895cfaf1ef90353a62c",
        "fe0a44309b74d6b5883d246cb419c6221bcccf0b308c9b59b7d70783dbdf928a",
    ),
    base(
        Network::Signet,
        290_000,
        "0000000577f2741bb30cd9d39d6d71b023afbeb9764f6260786a97969d5c9ac0",
        "97267e000b4b876800167e71b9123f1529d13b14308abec2888bbd2160d14545",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_base_is_found_on_its_network_alone() {
        for base in BASES {
            let block: BlockHash = base.block.parse().unwrap();
            assert_eq!(SnapshotBase::find(base.network, block), Some(base));
            assert_eq!(SnapshotBase::find(Network::Regtest, block), None);
            assert!(base.set_hash.parse::<BlockHash>().is_ok());
        }
    }
}

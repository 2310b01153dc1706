//! Reading payloads. Counts are checked against the bytes that are there, so nothing is allocated
//! for what has not come.

use varve_types::{BlockHash, DecodeError, DecodeErrorKind, Header, Reader, compact_size};

use super::{Command, Inventory, MAX_INVENTORY, Message, Version};
use crate::source::HeaderBytes;

/// The most headers of one message. A peer that sends as many has more.
pub(crate) const MAX_HEADERS: usize = 2000;
const MAX_AGENT: u64 = 256;
const MAX_LOCATOR: u64 = 101;
/// A header, one transaction count at least.
const MIN_BLOCK: usize = Header::LEN + 1;

/// A payload that is not what its command says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a bad `{}` message: {source}", command.name())]
pub struct PayloadError {
    /// What it should be.
    pub command: Command,
    /// What is wrong.
    pub source: DecodeError,
}

impl Message {
    /// Decodes the payload of a command. A block is only looked at as far as
    /// its length, and a transaction not at all.
    pub fn decode(command: Command, payload: Vec<u8>) -> Result<Self, PayloadError> {
        match command {
            Command::Block if payload.len() >= MIN_BLOCK => return Ok(Self::Block(payload)),
            Command::Tx => return Ok(Self::Tx(payload)),
            _ => {}
        }
        read(command, &payload).map_err(|source| PayloadError { command, source })
    }
}

fn read(command: Command, payload: &[u8]) -> Result<Message, DecodeError> {
    let mut reader = Reader::new(payload);
    let message = match command {
        Command::Version => return version(&mut reader).map(Message::Version),
        Command::Other => return Ok(Message::Other),
        Command::Verack => Message::Verack,
        Command::SendHeaders => Message::SendHeaders,
        Command::WtxidRelay => Message::WtxidRelay,
        Command::Mempool => Message::Mempool,
        Command::FeeFilter => Message::FeeFilter(reader.u64("a fee rate")?),
        Command::Ping => Message::Ping(reader.u64("a nonce")?),
        Command::Pong => Message::Pong(reader.u64("a nonce")?),
        Command::GetHeaders => Message::GetHeaders(locator(&mut reader)?),
        Command::Headers => Message::Headers(headers(&mut reader)?),
        Command::GetData => Message::GetData(inventory(&mut reader)?),
        Command::Inv => Message::Inv(inventory(&mut reader)?),
        Command::NotFound => Message::NotFound(inventory(&mut reader)?),
        Command::Block | Command::Tx => {
            return Err(reader.error(DecodeErrorKind::UnexpectedEnd { what: "a block" }));
        }
    };
    reader.end()?;
    Ok(message)
}

/// Later versions of the protocol append fields, so the end is not looked for.
fn version(reader: &mut Reader<'_>) -> Result<Version, DecodeError> {
    let version = reader.array("a version").map(|bytes| i32::from_le_bytes(*bytes))?;
    let services = reader.u64("services")?;
    let time = reader.array("a time").map(|bytes| i64::from_le_bytes(*bytes))?;
    reader.take(2 * 26, "two addresses")?;
    let nonce = reader.u64("a nonce")?;
    let length = compact_size::read(reader, MAX_AGENT, "a user agent")?;
    // It may end up on a screen, so only what can be seen is kept.
    let visible = |byte: &u8| if byte.is_ascii_graphic() { char::from(*byte) } else { '?' };
    let agent = reader.take(length, "a user agent")?.iter().map(visible).collect();
    let height = reader.array("a height").map(|bytes| i32::from_le_bytes(*bytes))?;
    // Where it says nothing it wants transactions.
    let relay = reader.array::<1>("a relay flag").map_or(true, |[relay]| *relay != 0);
    Ok(Version { version, services, time, nonce, agent, height, relay })
}

fn locator(reader: &mut Reader<'_>) -> Result<Vec<BlockHash>, DecodeError> {
    reader.u32("a version")?;
    let count = count(reader, MAX_LOCATOR, 32, "hashes")?;
    let mut hashes = Vec::with_capacity(count);
    for _ in 0..count {
        hashes.push(BlockHash::from_bytes(*reader.array("a hash")?));
    }
    reader.array::<32>("a last hash")?;
    Ok(hashes)
}

fn headers(reader: &mut Reader<'_>) -> Result<Vec<HeaderBytes>, DecodeError> {
    let count = count(reader, MAX_HEADERS as u64, 81, "headers")?;
    let mut headers = Vec::with_capacity(count);
    for _ in 0..count {
        headers.push(*reader.array("a header")?);
        // The number of transactions: always none here.
        let offset = reader.offset();
        let txs = compact_size::read(reader, 0, "no transactions")?;
        debug_assert_eq!((txs, reader.offset()), (0, offset + 1));
    }
    Ok(headers)
}

fn inventory(reader: &mut Reader<'_>) -> Result<Vec<Inventory>, DecodeError> {
    let count = count(reader, MAX_INVENTORY, 36, "inventory")?;
    let mut list = Vec::with_capacity(count);
    for _ in 0..count {
        let kind = reader.u32("a kind")?;
        list.push(Inventory { kind, hash: BlockHash::from_bytes(*reader.array("a hash")?) });
    }
    Ok(list)
}

/// A number of things of at least `size` bytes each, which must be there.
fn count(
    reader: &mut Reader<'_>,
    limit: u64,
    size: usize,
    what: &'static str,
) -> Result<usize, DecodeError> {
    let count = compact_size::read(reader, limit, what)?;
    let fits = reader.rest().len() / size;
    match usize::try_from(count) {
        Ok(number) if number <= fits => Ok(number),
        _ => Err(reader.error(DecodeErrorKind::CountTooLarge { what, count })),
    }
}

#[cfg(test)]
mod tests {
    use varve_types::Network;

    use super::super::{FRAME_LEN, Frame};
    use super::*;

    fn all() -> Vec<Message> {
        let hash = |byte| BlockHash::from_bytes([byte; 32]);
        let inventory = vec![Inventory::block(hash(1), Network::Regtest); 3];
        let version = Version {
            version: 70_016,
            services: 9,
            time: 1_700_000_000,
            nonce: 77,
            agent: "/varve:0.1/".to_owned(),
            height: 5,
            relay: true,
        };
        vec![
            Message::Version(version),
            Message::Verack,
            Message::SendHeaders,
            Message::WtxidRelay,
            Message::FeeFilter(1_000),
            Message::Mempool,
            Message::Ping(1),
            Message::Pong(2),
            Message::GetHeaders(vec![hash(3), hash(4)]),
            Message::Headers(vec![[5; Header::LEN]; 2]),
            Message::GetData(inventory.clone()),
            Message::Inv(inventory.clone()),
            Message::NotFound(inventory),
            Message::Tx(vec![9; 100]),
            Message::Block(vec![7; 100]),
        ]
    }

    #[test]
    fn messages_round_trip_and_every_cut_is_seen() {
        for message in all() {
            let bytes = message.encode(Network::Regtest);
            let (frame, payload) = bytes.split_first_chunk::<FRAME_LEN>().unwrap();
            let frame = Frame::decode(frame);
            assert_eq!(frame.magic, Network::Regtest.wire_magic());
            assert_eq!(frame.length as usize, payload.len());
            assert!(
                frame.matches(payload) && frame.length <= frame.command.limit(Network::Regtest)
            );
            assert_eq!(Message::decode(frame.command, payload.to_vec()), Ok(message));
            let cut = payload.len().saturating_sub(1);
            if !matches!(frame.command, Command::Block | Command::Tx | Command::Version) && cut > 0
            {
                assert!(Message::decode(frame.command, payload[..cut].to_vec()).is_err());
            }
        }
    }

    #[test]
    fn the_bitcoin_crate_reads_what_we_write() {
        use bitcoin::consensus::encode::deserialize;
        use bitcoin::p2p::message::{NetworkMessage, RawNetworkMessage};
        for message in all() {
            let bytes = message.encode(Network::Regtest);
            let theirs = deserialize::<RawNetworkMessage>(&bytes);
            match (&message, theirs.map(|message| message.into_payload())) {
                (Message::Block(_) | Message::Tx(_), _) => {}
                (Message::Version(ours), Ok(NetworkMessage::Version(theirs))) => {
                    assert_eq!((ours.nonce, &ours.agent), (theirs.nonce, &theirs.user_agent));
                    assert_eq!((ours.height, theirs.relay), (theirs.start_height, true));
                }
                (Message::GetHeaders(ours), Ok(NetworkMessage::GetHeaders(theirs))) => {
                    assert_eq!(ours.len(), theirs.locator_hashes.len());
                }
                (message, Ok(theirs)) => assert_eq!(message.command().name(), theirs.cmd()),
                (message, Err(error)) => panic!("{message:?}: {error}"),
            }
        }
    }

    #[test]
    fn counts_are_not_believed() {
        let huge = vec![0xfe, 0xff, 0xff, 0xff, 0x01];
        for command in [Command::Headers, Command::Inv, Command::NotFound] {
            assert!(Message::decode(command, huge.clone()).is_err());
        }
        assert!(Message::decode(Command::Headers, vec![0xfd, 0xd0, 0x07]).is_err());
        assert!(Message::decode(Command::Block, vec![0; 80]).is_err());
    }
}

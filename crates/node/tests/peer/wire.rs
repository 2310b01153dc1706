//! The wire as a scripted peer sees it: messages over a socket, and a greeting.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use varve_node::test_suite::wire::{FRAME_LEN, Frame, Message, Version};
use varve_types::Network;

/// Sends a message. The other side may have gone, which is what some tests wait for.
pub(crate) fn send(stream: &mut TcpStream, network: Network, message: &Message) {
    let _ = stream.write_all(&message.encode(network));
}

/// The next message; `None` at the end of the connection.
pub(crate) fn receive(stream: &mut TcpStream) -> Option<Message> {
    let mut head = [0; FRAME_LEN];
    stream.read_exact(&mut head).ok()?;
    let frame = Frame::decode(&head);
    let mut payload = vec![0; frame.length as usize];
    stream.read_exact(&mut payload).ok()?;
    assert!(frame.matches(&payload), "our own messages are right");
    Some(Message::decode(frame.command, payload).unwrap())
}

/// Greets as a node does that has these services.
pub(crate) fn greet(stream: &mut TcpStream, network: Network, services: u64) {
    let (agent, time, nonce, height) = ("/script/".to_owned(), 0, 1, 0);
    let version = Version { version: 70_016, services, time, nonce, agent, height, relay: false };
    send(stream, network, &Message::Version(version));
    send(stream, network, &Message::Verack);
}

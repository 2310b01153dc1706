//! A way to a node on which blocks get lost.
//!
//! ```text
//! varve ─────────────────────────► node
//!       ◄── frames, but for some ──
//! ```
//!
//! A frame is `magic 4 │ command 12 │ length u32le │ checksum 4 │ payload`.

use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread;

/// Listens, and passes everything on to the node at `to` and back, but only so many blocks. Gives
/// the address.
pub(crate) fn losing_blocks(to: String, blocks: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for ours in listener.incoming() {
            let (ours, node) = (ours.unwrap(), TcpStream::connect(&to).unwrap());
            let (mut from, mut into) = (ours.try_clone().unwrap(), node.try_clone().unwrap());
            // Both ends when one side goes.
            thread::spawn(move || io::copy(&mut from, &mut into));
            thread::spawn(move || pass(node, ours, blocks));
        }
    });
    address
}

fn pass(mut node: TcpStream, mut ours: TcpStream, mut blocks: usize) -> io::Result<()> {
    loop {
        let mut frame = vec![0; 24];
        node.read_exact(&mut frame)?;
        let length = u32::from_le_bytes(frame[16..20].try_into().unwrap());
        io::Read::by_ref(&mut node).take(length.into()).read_to_end(&mut frame)?;
        if frame[4..].starts_with(b"block\0") {
            if blocks == 0 {
                continue;
            }
            blocks -= 1;
        }
        ours.write_all(&frame)?;
    }
}

//! The Electrum server, asked over sockets.

mod chain;
mod client;
mod consistency;
mod hostile;
mod ledger;
mod mempool;
mod methods;
mod notifications;
mod real_node;
mod scripts;
mod server;
mod transports;
mod wallets;

//! The engine on PostgreSQL keeps the contract, on a real server.

mod chaos;
mod history;
mod opening;
mod proxy;
mod shared;

use varve_records::contract::postgres::Server;
use varve_records::contract::random::{Walk, walk};

varve_records::engine_contract!(match Server::shared() {
    Some(server) => server.disk(),
    None => return,
});

#[test]
fn long_walks_agree_with_the_oracle() {
    let Some(server) = Server::shared() else { return };
    for seed in 70..74 {
        walk(&server.disk(), &Walk { seed, steps: 150, reopen: 3 });
    }
}

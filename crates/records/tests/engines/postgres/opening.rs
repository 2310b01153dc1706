//! One clear sentence for each reason why records cannot be opened, and no secret in it.

use std::net::TcpListener;

use varve_records::contract::postgres::Server;
use varve_records::{Engine as _, PostgresEngine};

fn refusal(url: &str) -> String {
    let error = PostgresEngine::open(url).expect_err("it cannot be opened").to_string();
    assert!(!error.contains("hunter2"), "the password is shown: {error}");
    error
}

#[test]
fn a_server_that_is_down_is_named() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let error = refusal(&format!("postgres://varve:hunter2@127.0.0.1:{port}/postgres"));
    let expected = format!("no PostgreSQL server answers at 127.0.0.1:{port}/postgres: ");
    assert!(error.starts_with(&expected), "{error}");
}

#[test]
fn a_wrong_password_is_named() {
    let Some(server) = Server::start() else { return };
    server.execute("CREATE ROLE guarded LOGIN PASSWORD 'right'");
    server.require_password();
    let port = server.port();
    for password in [":hunter2", ""] {
        let url = format!("postgres://guarded{password}@127.0.0.1:{port}/postgres");
        let error = refusal(&url);
        let expected =
            format!("PostgreSQL at 127.0.0.1:{port}/postgres refuses the user guarded: ");
        assert!(error.starts_with(&expected), "{error}");
    }
}

#[test]
fn a_database_that_is_not_there_is_named() {
    let Some(server) = Server::shared() else { return };
    let url = server.url("any").replace("/postgres?", "/elsewhere?");
    assert!(refusal(&url).contains("database \"elsewhere\" does not exist"), "{}", refusal(&url));
}

#[test]
fn tables_of_others_are_left_alone() {
    let Some(server) = Server::shared() else { return };
    server.execute("CREATE SCHEMA shop CREATE TABLE goods (name text)");
    let error = refusal(&server.url("shop"));
    assert!(error.contains("schema shop of ") && error.contains("no records of Varve"), "{error}");
    server.execute("CREATE TABLE shop.about (kind text, version integer)");
    assert!(refusal(&server.url("shop")).contains("no records of Varve"), "an empty `about`");
    server.execute("DROP TABLE shop.goods; DROP TABLE shop.about");
    drop(PostgresEngine::open(&server.url("shop")).expect("an empty schema is taken"));
}

#[test]
fn a_schema_may_be_called_like_a_word_of_sql() {
    let Some(server) = Server::shared() else { return };
    for _ in 0..2 {
        let engine = PostgresEngine::open(&server.url("table")).unwrap();
        assert!(engine.intents(None, 1).unwrap().is_empty());
    }
}

#[test]
fn a_newer_schema_is_not_touched() {
    let Some(server) = Server::shared() else { return };
    drop(PostgresEngine::open(&server.url("later")).unwrap());
    server.execute("UPDATE later.about SET version = 7");
    let error = refusal(&server.url("later"));
    assert!(error.contains("version 7") && error.contains("use a newer one"), "{error}");
}

#[test]
fn a_server_that_may_forget_is_refused() {
    let Some(server) = Server::start() else { return };
    server.execute("ALTER SYSTEM SET fsync = off");
    server.restart();
    let error = refusal(&server.url("any"));
    assert!(error.contains("fsync = off"), "{error}");
}

//! The statements, prepared once a connection, and the schema.

use futures_util::future::try_join_all;
use tokio_postgres::{Client, Error, Statement};

/// The steps from nothing to the schema of today. A step that was released is never changed.
pub(super) const MIGRATIONS: &[&str] = &["
CREATE TABLE records (
    txid bytea PRIMARY KEY,
    state bytea NOT NULL,
    unmined bigint,
    due bigint,
    preserved bigint,
    conflicting boolean NOT NULL
) WITH (fillfactor = 80);
CREATE TABLE bodies (txid bytea PRIMARY KEY, inputs bytea NOT NULL, body bytea NOT NULL);
CREATE TABLE chunks (
    txid bytea NOT NULL,
    number integer NOT NULL,
    chunk bytea NOT NULL,
    PRIMARY KEY (txid, number)
);
CREATE TABLE intents (id bytea PRIMARY KEY, intent bytea NOT NULL);
CREATE TABLE leases (
    task text PRIMARY KEY,
    holder text NOT NULL,
    fence bigint NOT NULL,
    until timestamptz NOT NULL
);
CREATE TABLE marks (link text PRIMARY KEY, batch bigint NOT NULL, at timestamptz NOT NULL);
CREATE INDEX records_unmined ON records (unmined, txid) WHERE unmined IS NOT NULL;
CREATE INDEX records_due ON records (due, txid) WHERE due IS NOT NULL;
CREATE INDEX records_preserved ON records (preserved, txid) WHERE preserved IS NOT NULL;
CREATE INDEX records_conflicting ON records (txid) WHERE conflicting;
ALTER TABLE records ALTER COLUMN state SET STORAGE MAIN;
ALTER TABLE bodies ALTER COLUMN body SET STORAGE EXTERNAL;
"];

/// Names a statement.
#[derive(Clone, Copy, Debug)]
pub(super) enum Sql {
    LockRecords,
    Records,
    Inputs,
    Bodies,
    Chunks,
    AllChunks,
    Unmined,
    DeleteRecords,
    DeleteBodies,
    DeleteChunks,
    InsertRecords,
    InsertBodies,
    UpdateRecords,
    CopyChunks,
    UpdateChunks,
    DeleteIntents,
    InsertIntents,
    Intents,
    Mark,
    End,
    Fate,
    TakeLease,
    KeepLease,
    EndLease,
    ScanAll,
    ScanConflicting,
    ScanUnmined,
    ScanDue,
    ScanPreserved,
    Status,
}

/// The statements in the order of [`Sql`].
const STATEMENTS: [&str; 30] = [
    "SELECT txid, state FROM records WHERE txid = ANY($1::bytea[]) ORDER BY txid FOR UPDATE",
    "SELECT txid, state FROM records WHERE txid = ANY($1::bytea[])",
    "SELECT txid, inputs FROM bodies WHERE txid = ANY($1::bytea[])",
    "SELECT txid, inputs, body FROM bodies WHERE txid = ANY($1::bytea[])",
    "SELECT c.txid, c.number, c.chunk FROM chunks c \
     JOIN unnest($1::bytea[], $2::int4[]) AS w(txid, number) USING (txid, number)",
    "SELECT txid, number, chunk FROM chunks WHERE txid = ANY($1::bytea[]) ORDER BY txid, number",
    "SELECT txid FROM records WHERE txid = ANY($1::bytea[]) AND unmined IS NOT NULL",
    "DELETE FROM records WHERE txid = ANY($1::bytea[])",
    "DELETE FROM bodies WHERE txid = ANY($1::bytea[])",
    "DELETE FROM chunks WHERE txid = ANY($1::bytea[])",
    "INSERT INTO records (txid, state, unmined, due, preserved, conflicting) \
     SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::int8[], $4::int8[], $5::int8[], \
     $6::bool[])",
    "INSERT INTO bodies (txid, inputs, body) \
     SELECT * FROM unnest($1::bytea[], $2::bytea[], $3::bytea[])",
    "UPDATE records r SET state = n.state, unmined = n.unmined, due = n.due, \
     preserved = n.preserved, conflicting = n.conflicting \
     FROM unnest($1::bytea[], $2::bytea[], $3::int8[], $4::int8[], $5::int8[], $6::bool[]) \
     AS n(txid, state, unmined, due, preserved, conflicting) WHERE r.txid = n.txid",
    "COPY chunks (txid, number, chunk) FROM STDIN BINARY",
    "UPDATE chunks c SET chunk = n.chunk \
     FROM unnest($1::bytea[], $2::int4[], $3::bytea[]) AS n(txid, number, chunk) \
     WHERE c.txid = n.txid AND c.number = n.number",
    "DELETE FROM intents WHERE id = ANY($1::bytea[])",
    "INSERT INTO intents (id, intent) SELECT * FROM unnest($1::bytea[], $2::bytea[]) \
     ON CONFLICT DO NOTHING",
    "SELECT intent FROM intents WHERE id > $1::bytea ORDER BY id LIMIT $2::int8",
    "INSERT INTO marks (link, batch, at) VALUES ($1::text, $2::int8, now()) \
     ON CONFLICT (link) DO UPDATE SET batch = $2::int8, at = now()",
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
     WHERE pid = $1::int4 AND backend_start = $2::text::timestamptz",
    "SELECT coalesce((SELECT batch FROM marks WHERE link = $1::text), 0) >= $2::int8",
    "INSERT INTO leases (task, holder, fence, until) \
     VALUES ($1::text, $2::text, 1, clock_timestamp() + interval '30 seconds') \
     ON CONFLICT (task) DO UPDATE SET holder = $2::text, fence = leases.fence + 1, \
     until = clock_timestamp() + interval '30 seconds' \
     WHERE leases.until < clock_timestamp() OR leases.holder = $2::text RETURNING fence",
    "UPDATE leases SET until = clock_timestamp() + interval '30 seconds' \
     WHERE task = $1::text AND holder = $2::text AND fence = $3::int8",
    "UPDATE leases SET until = '-infinity' \
     WHERE task = $1::text AND holder = $2::text AND fence = $3::int8",
    "SELECT txid, 0::int8 FROM records WHERE $1::int8 IS NOT NULL AND $2::int8 IS NOT NULL \
     AND txid > $3::bytea ORDER BY txid LIMIT $4::int8",
    "SELECT txid, 0::int8 FROM records WHERE $1::int8 IS NOT NULL AND $2::int8 IS NOT NULL \
     AND conflicting AND txid > $3::bytea ORDER BY txid LIMIT $4::int8",
    "SELECT txid, unmined FROM records WHERE unmined <= $1::int8 \
     AND (unmined, txid) > ($2::int8, $3::bytea) ORDER BY unmined, txid LIMIT $4::int8",
    "SELECT txid, due FROM records WHERE due <= $1::int8 \
     AND (due, txid) > ($2::int8, $3::bytea) ORDER BY due, txid LIMIT $4::int8",
    "SELECT txid, preserved FROM records WHERE preserved <= $1::int8 \
     AND (preserved, txid) > ($2::int8, $3::bytea) ORDER BY preserved, txid LIMIT $4::int8",
    "SELECT greatest(0, c.reltuples)::int8, (SELECT count(*) FROM intents), \
     pg_total_relation_size('records') + pg_total_relation_size('bodies') \
     + pg_total_relation_size('chunks') FROM pg_class c WHERE c.oid = 'records'::regclass",
];

const _: () = assert!(Sql::Status as usize + 1 == STATEMENTS.len());

/// The statements of one connection.
pub(super) struct Statements(Vec<Statement>);

impl Statements {
    /// Prepares all of them in one round trip.
    pub(super) async fn prepare(client: &Client) -> Result<Self, Error> {
        try_join_all(STATEMENTS.iter().map(|text| client.prepare(text))).await.map(Self)
    }

    pub(super) fn get(&self, sql: Sql) -> &Statement {
        self.0.get(sql as usize).expect("every statement is prepared")
    }
}

//! The methods: what each is called, what it takes, and who answers it.
//!
//! Every method is answered whichever version was negotiated; where versions differ in the shape of
//! an answer, the client's version decides. A method writes its result behind what is already in
//! the answer's buffer. When it fails, what it has written is taken back and the error written.

mod broadcast;
mod chain;
mod fees;
mod outpoint;
mod script;
mod server;
mod transaction;

use std::collections::HashMap;
use std::sync::LazyLock;
use std::time::Instant;

use serde::Serialize;
use serde_json::value::RawValue;
use varve::Snapshot;

use super::Shared;
use super::client::Client;
use super::fault::Fault;
use super::params::{Names, Params};
use super::request::{Line, Request};
use super::subject::{Naming, State, Subject, Topic};
use crate::metrics::Protocol;

pub(super) use broadcast::may_wait;

/// One request being answered.
pub(super) struct Call<'a> {
    pub(super) snapshot: &'a Snapshot,
    pub(super) shared: &'a Shared,
    pub(super) client: &'a mut Client,
    out: &'a mut Vec<u8>,
}

type Handler = fn(&mut Call<'_>, &Params<'_>) -> Result<(), Fault>;

/// A method.
pub(super) struct Method(&'static str, Names, Handler);

/// All of them, by name.
static METHODS: LazyLock<HashMap<&'static str, &'static Method>> = LazyLock::new(|| {
    let rooms: [&'static [Method]; 7] = [
        server::METHODS,
        chain::METHODS,
        script::METHODS,
        outpoint::METHODS,
        transaction::METHODS,
        broadcast::METHODS,
        fees::METHODS,
    ];
    rooms.into_iter().flatten().map(|method| (method.0, method)).collect()
});

impl Call<'_> {
    /// Writes the result.
    fn answer(&mut self, result: &impl Serialize) -> Result<(), Fault> {
        serde_json::to_writer(&mut *self.out, result)
            .map_err(|_| Fault::bad("the answer cannot be written as JSON"))
    }

    /// Subscribes and answers with the state now. `address` is the one that the client gave.
    fn subscribe(&mut self, topic: Topic, address: Option<String>) -> Result<(), Fault> {
        self.client.check_room(&self.shared.limits)?;
        self.shared.switchboard.check_room(&self.shared.limits)?;
        let state = self.state(topic.subject)?;
        self.client.subscribe(topic, address, &state);
        self.answer(&state)
    }

    fn unsubscribe(&mut self, subject: Subject, naming: Naming) -> Result<(), Fault> {
        let was_there = self.client.unsubscribe(subject, naming);
        self.answer(&was_there)
    }

    fn state(&self, subject: Subject) -> Result<State, Fault> {
        subject.state(self.snapshot, &self.shared.statuses)
    }
}

/// Answers a line at a snapshot: appends the answer, with the end of its line, to `out`, or nothing
/// when the line holds notifications alone.
pub(super) fn answer_line(
    line: &[u8],
    snapshot: &Snapshot,
    (shared, client): (&Shared, &mut Client),
    out: &mut Vec<u8>,
) {
    let begin = out.len();
    let mut call = Call { snapshot, shared, client, out };
    match Line::parse(line, shared.limits.batch) {
        Line::One(request) => answer_request(request, &mut call, begin),
        Line::Batch(batch) => {
            call.out.push(b'[');
            for request in batch {
                if call.client.is_leaving {
                    break;
                }
                let before = call.out.len();
                answer_request(Request::parse(request.get().as_bytes()), &mut call, begin);
                if call.out.len() > before {
                    call.out.push(b',');
                }
            }
            // An array in which nothing is said is not said either.
            match call.out.pop() {
                Some(b',') => call.out.push(b']'),
                _ => call.out.truncate(begin),
            }
        }
    }
    if out.len() > begin {
        out.push(b'\n');
    }
}

/// Appends the answer to one request; nothing when it is a notification. `begin` is where the
/// answer to its line begins.
fn answer_request(request: Result<Request<'_>, Fault>, call: &mut Call<'_>, begin: usize) {
    let (id, result) = match request {
        Err(fault) => (Some(RawValue::NULL), Err(fault)),
        Ok(request) => {
            let start = call.out.len();
            call.out.extend_from_slice(br#"{"jsonrpc":"2.0","result":"#);
            let limit = call.shared.limits.response;
            let result = if start - begin > limit {
                Err(Fault::response_too_large(limit))
            } else {
                run(&request, call)
            };
            let length = call.out.len() - start;
            let result = result.and_then(|()| match length > limit {
                true => Err(Fault::response_too_large(limit)),
                false => Ok(()),
            });
            if result.is_err() || request.id.is_none() {
                call.out.truncate(start);
            }
            (request.id, result.map_err(|fault| fault.known_to(call.client.version)))
        }
    };
    let Some(id) = id else { return };
    if let Err(fault) = result {
        call.out.extend_from_slice(br#"{"jsonrpc":"2.0","error":"#);
        let fault = serde_json::to_vec(&fault).unwrap_or_default();
        call.out.extend_from_slice(&fault);
    }
    call.out.extend_from_slice(br#","id":"#);
    call.out.extend_from_slice(id.get().as_bytes());
    call.out.push(b'}');
}

fn run(request: &Request<'_>, call: &mut Call<'_>) -> Result<(), Fault> {
    let method = METHODS.get(&*request.method);
    let Method(name, names, handler) = method.ok_or_else(|| Fault::no_method(&request.method))?;
    let begin = Instant::now();
    // Later versions may give more of them here, which older servers must ignore.
    let done = match *name == "server.version" {
        true => server::version(call, request.params),
        false => Params::parse(request.params, names).and_then(|params| handler(call, &params)),
    };
    call.shared.service.metrics().request(Protocol::Electrum, name, begin.elapsed());
    done
}

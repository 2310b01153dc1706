//! What the server remembers of one client.

use std::collections::HashSet;
use std::sync::Arc;

use super::fault::Fault;
use super::limits::Limits;
use super::subject::{Naming, Print, State, Subject, Topic};
use super::version::Version;

/// One client.
#[derive(Debug)]
pub(super) struct Client {
    /// What `server.version` has settled; the lowest before.
    pub(super) version: Version,
    pub(super) has_negotiated: bool,
    /// The connection ends once the answer is out.
    pub(super) is_leaving: bool,
    topics: HashSet<Topic>,
    /// What to do at the switchboard once the answer is on its way.
    pub(super) effects: Vec<Effect>,
}

/// A change of subscriptions that an answer has promised.
#[derive(Debug)]
pub(super) enum Effect {
    /// From now on, states that differ from this one are reported.
    Subscribe { topic: Topic, address: Option<Arc<str>>, print: Print },
    /// No longer.
    Unsubscribe { topic: Topic },
}

impl Default for Client {
    fn default() -> Self {
        Self {
            version: Version::V1_4,
            has_negotiated: false,
            is_leaving: false,
            topics: HashSet::new(),
            effects: Vec::new(),
        }
    }
}

impl Client {
    /// Checks that there is room for a subscription before its state is computed.
    pub(super) fn check_room(&self, limits: &Limits) -> Result<(), Fault> {
        let most = limits.subscriptions;
        if self.topics.len() < most {
            return Ok(());
        }
        Err(Fault::bad(format!("too many subscriptions: the limit is {most} for a connection")))
    }

    /// Subscribes. A subscription that is there already is renewed: its state was just reported.
    pub(super) fn subscribe(&mut self, topic: Topic, address: Option<String>, state: &State) {
        self.topics.insert(topic);
        let (address, print) = (address.map(Into::into), state.print());
        self.effects.push(Effect::Subscribe { topic, address, print });
    }

    /// Ends a subscription; false when there is none.
    pub(super) fn unsubscribe(&mut self, subject: Subject, naming: Naming) -> bool {
        let topic = Topic { subject, naming };
        let was_there = self.topics.remove(&topic);
        if was_there {
            self.effects.push(Effect::Unsubscribe { topic });
        }
        was_there
    }

    /// All that is subscribed to.
    pub(super) fn topics(&self) -> impl Iterator<Item = &Topic> {
        self.topics.iter()
    }
}

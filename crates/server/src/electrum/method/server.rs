//! Methods about the server itself.

use serde_json::json;
use serde_json::value::RawValue;

use super::{Call, Method};
use crate::electrum::fault::Fault;
use crate::electrum::params::Params;
use crate::electrum::version::Version;

pub(super) const METHODS: &[Method] = &[
    // Answered apart, because it ignores what it does not know.
    Method("server.version", &["client_name", "protocol_version"], |call, _| version(call, None)),
    Method("server.features", &[], features),
    Method("server.ping", &["pong_len", "data"], ping),
    Method("server.banner", &[], |call, _| call.answer(&call.shared.options.banner)),
    Method("server.donation_address", &[], |call, _| {
        call.answer(&call.shared.options.donation_address)
    }),
    // Peers are not gossiped about: nobody can check what others claim to be.
    Method("server.peers.subscribe", &[], |call, _| call.answer(&json!([]))),
    Method("server.add_peer", &["features"], |call, _| call.answer(&false)),
];

/// The name and version of this software.
const SOFTWARE: &str = concat!("Varve ", env!("CARGO_PKG_VERSION"));

/// Settles the version. Only the first call counts; without a common version the client is
/// disconnected.
pub(super) fn version(call: &mut Call<'_>, params: Option<&RawValue>) -> Result<(), Fault> {
    if call.client.has_negotiated {
        return Err(Fault::bad("server.version already sent"));
    }
    let wanted = wanted(params)?;
    let common = wanted.and_then(|(lowest, highest)| Version::common(lowest, highest));
    let Some(version) = common else {
        call.client.is_leaving = true;
        let (lowest, highest) = Version::RANGE;
        return Err(Fault::bad(format!(
            "unsupported protocol version: this server speaks {lowest} to {highest}"
        )));
    };
    call.client.has_negotiated = true;
    call.client.version = version;
    call.answer(&[SOFTWARE, &version.to_string()])
}

/// The versions that a client asks for: one, a pair, or the lowest when it names none. `None` when
/// what it names is no version.
fn wanted(params: Option<&RawValue>) -> Result<Option<(Version, Version)>, Fault> {
    #[derive(serde::Deserialize)]
    #[serde(untagged)]
    enum Wanted {
        One(String),
        Pair(String, String),
    }
    #[derive(serde::Deserialize)]
    struct Named {
        protocol_version: Option<Wanted>,
    }
    let text = params.map_or("[]", RawValue::get);
    let wrong = |_| Fault::params("server.version takes a name, and a version or two");
    let wanted: Option<Wanted> = if text.starts_with('{') {
        serde_json::from_str::<Named>(text).map_err(wrong)?.protocol_version
    } else {
        let listed: Vec<&RawValue> = serde_json::from_str(text).map_err(wrong)?;
        let second = listed.get(1).map(|raw| serde_json::from_str(raw.get()));
        second.transpose().map_err(wrong)?.flatten()
    };
    Ok(match wanted {
        None => Some((Version::V1_4, Version::V1_4)),
        Some(Wanted::One(one)) => one.parse().ok().map(|one| (one, one)),
        Some(Wanted::Pair(low, high)) => low.parse().ok().zip(high.parse().ok()),
    })
}

fn features(call: &mut Call<'_>, _: &Params<'_>) -> Result<(), Fault> {
    let (lowest, highest) = Version::RANGE;
    let mut features = json!({
        "hosts": call.shared.options.hosts(),
        "genesis_hash": call.snapshot.network().genesis_hash().to_string(),
        "server_version": SOFTWARE,
        "protocol_min": lowest.to_string(),
        "protocol_max": highest.to_string(),
        "pruning": null,
        "services": [],
    });
    if let Some(fields) = features.as_object_mut().filter(|_| call.client.version < Version::V1_7) {
        fields.insert("hash_function".to_owned(), json!("sha256"));
    }
    call.answer(&features)
}

/// Up to 1.6 it takes nothing and returns null; from 1.7 on it asks for padding of a length.
fn ping(call: &mut Call<'_>, params: &Params<'_>) -> Result<(), Fault> {
    if call.client.version < Version::V1_7 && params.is_empty() {
        return call.answer(&());
    }
    let length = usize::try_from(params.number_or(0, 0)?).unwrap_or(usize::MAX);
    let limit = call.shared.limits.response / 2;
    if length > limit {
        return Err(Fault::bad(format!("pong_len is too high: the limit is {limit}")));
    }
    let data: Option<String> = params.optional(1)?;
    if data.is_some_and(|data| !data.bytes().all(|byte| byte.is_ascii_hexdigit())) {
        return Err(Fault::bad("data should be hex"));
    }
    call.answer(&json!({"data": "0".repeat(length)}))
}

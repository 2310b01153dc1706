//! The parameters of a request: by position or by name, each read as the type that is wanted.

use std::collections::BTreeMap;

use hex_conservative::FromHex as _;
use serde::Deserialize;
use serde_json::value::RawValue;
use varve::{Height, ScriptHash, Txid};

use super::fault::Fault;

/// The names of a method's parameters, in order.
pub(super) type Names = &'static [&'static str];

/// The parameters of one request. Those that are missing or null are not there.
#[derive(Debug)]
pub(super) struct Params<'a> {
    names: Names,
    values: Vec<Option<&'a RawValue>>,
}

impl<'a> Params<'a> {
    pub(super) fn parse(raw: Option<&'a RawValue>, names: Names) -> Result<Self, Fault> {
        let mut values = vec![None; names.len()];
        let text = raw.map_or("[]", RawValue::get);
        if text.starts_with('{') {
            let named: BTreeMap<String, &RawValue> = read(text, "the parameters")?;
            for (name, value) in named {
                let place = names.iter().position(|known| *known == name);
                let slot = place.and_then(|place| values.get_mut(place));
                let unknown = || Fault::params(format!("unknown parameter; known are {names:?}"));
                *slot.ok_or_else(unknown)? = Some(value);
            }
        } else if !text.starts_with('[') {
            return Err(Fault::params("the parameters are an array or an object"));
        } else {
            let listed: Vec<&RawValue> = read(text, "the parameters")?;
            if listed.len() > names.len() {
                let (given, most) = (listed.len(), names.len());
                return Err(Fault::params(format!(
                    "{given} parameters given, at most {most} taken"
                )));
            }
            values.iter_mut().zip(listed).for_each(|(slot, value)| *slot = Some(value));
        }
        values.iter_mut().for_each(|value| *value = value.filter(|raw| raw.get() != "null"));
        Ok(Self { names, values })
    }

    /// Whether nothing was given.
    pub(super) fn is_empty(&self) -> bool {
        self.values.iter().all(Option::is_none)
    }

    fn name(&self, place: usize) -> &'static str {
        self.names.get(place).copied().unwrap_or_default()
    }

    /// A parameter that may be missing.
    pub(super) fn optional<T: Deserialize<'a>>(&self, place: usize) -> Result<Option<T>, Fault> {
        let raw = self.values.get(place).copied().flatten();
        raw.map(|raw| read(raw.get(), self.name(place))).transpose()
    }

    /// A parameter that must be there.
    pub(super) fn required<T: Deserialize<'a>>(&self, place: usize) -> Result<T, Fault> {
        let missing = || Fault::params(format!("the parameter {} is missing", self.name(place)));
        self.optional(place)?.ok_or_else(missing)
    }

    /// Text of 64 digits, as hashes are shown.
    fn hash<T: std::str::FromStr>(&self, place: usize) -> Result<T, Fault> {
        let name = self.name(place);
        let wrong = || Fault::bad(format!("{name} should be a hash of 64 hex digits"));
        self.text(place)?.parse().map_err(|_| wrong())
    }

    pub(super) fn text(&self, place: usize) -> Result<String, Fault> {
        self.required(place)
    }

    pub(super) fn txid(&self, place: usize) -> Result<Txid, Fault> {
        self.hash(place)
    }

    pub(super) fn script_hash(&self, place: usize) -> Result<ScriptHash, Fault> {
        self.hash(place)
    }

    /// A number of blocks, outputs or the like.
    pub(super) fn number(&self, place: usize) -> Result<u32, Fault> {
        self.required(place)
    }

    pub(super) fn number_or(&self, place: usize, default: u32) -> Result<u32, Fault> {
        Ok(self.optional(place)?.unwrap_or(default))
    }

    pub(super) fn height(&self, place: usize) -> Result<Height, Fault> {
        self.number(place).map(Height::new)
    }

    /// True or false, which Python clients also write as 1 or 0; false when missing.
    pub(super) fn flag(&self, place: usize) -> Result<bool, Fault> {
        match self.values.get(place).copied().flatten().map(RawValue::get) {
            None | Some("false" | "0") => Ok(false),
            Some("true" | "1") => Ok(true),
            Some(_) => Err(Fault::bad(format!("{} should be a boolean", self.name(place)))),
        }
    }

    /// Bytes in hex.
    pub(super) fn bytes(&self, place: usize) -> Result<Vec<u8>, Fault> {
        let name = self.name(place);
        let wrong = |_| Fault::bad(format!("{name} should be bytes in hex"));
        Vec::from_hex(&self.text(place)?).map_err(wrong)
    }

    /// A list of bytes in hex.
    pub(super) fn list_of_bytes(&self, place: usize) -> Result<Vec<Vec<u8>>, Fault> {
        let name = self.name(place);
        let wrong = |_| Fault::bad(format!("{name} should be a list of bytes in hex"));
        let texts: Vec<String> = self.required(place)?;
        texts.iter().map(|text| Vec::from_hex(text).map_err(wrong)).collect()
    }
}

fn read<'a, T: Deserialize<'a>>(text: &'a str, what: &str) -> Result<T, Fault> {
    serde_json::from_str(text).map_err(|error| {
        // The reason without its place, which counts within the parameter alone.
        let reason = error.to_string();
        let reason = reason.split(" at line ").next().unwrap_or_default();
        Fault::bad(format!(
            "{what} cannot be read: {}",
            reason.chars().take(120).collect::<String>()
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<(u32, bool), Fault> {
        let raw: &RawValue = serde_json::from_str(text).unwrap();
        let params = Params::parse(Some(raw), &["height", "merkle"])?;
        Ok((params.number(0)?, params.flag(1)?))
    }

    #[test]
    fn by_position_and_by_name() {
        for text in ["[7,true]", "[7, 1]", r#"{"merkle":true,"height":7}"#] {
            assert_eq!(parse(text).unwrap(), (7, true), "{text}");
        }
        for text in ["[7]", "[7,null]", r#"{"height":7}"#, "[7,0]"] {
            assert_eq!(parse(text).unwrap(), (7, false), "{text}");
        }
    }

    #[test]
    fn wrong_ones_have_their_code() {
        for text in ["[]", "{}", "[null]", "[1,true,3]", r#"{"height":1,"other":2}"#, "7"] {
            assert_eq!(parse(text).unwrap_err().code, -32602, "{text}");
        }
        for text in ["[-1]", "[1.5]", "[99999999999999999999999]", "[\"7\"]", "[[7]]", "[7,2]"] {
            assert_eq!(parse(text).unwrap_err().code, 1, "{text}");
        }
    }
}

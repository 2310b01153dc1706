//! Sampled answers: some outputs with their spenders, some scripts with their histories.
//!
//! What is sampled is decided by the bytes themselves, so that it needs no second pass: a script or
//! an outpoint is in the sample when a word of it is below a limit. When the sample grows too
//! large, the limit is halved and what is now above it is dropped; what stays has been followed
//! from its first block on. Scripts named beforehand are followed whatever their word is.

use std::collections::{BTreeMap, HashMap, HashSet};

use varve_types::{Outpoint, Txid};

use super::StoredCoin;

const MAX_OUTPUTS: usize = 600;
const MAX_SCRIPTS: usize = 200;

/// Where a transaction is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    pub(crate) height: u32,
    pub(crate) position: u32,
    pub(crate) txid: Txid,
}

/// An output of the active branch.
#[derive(Clone, Debug)]
pub struct OutputSample {
    /// Which output.
    pub outpoint: Outpoint,
    /// Its value in satoshi.
    pub value: u64,
    /// Its script.
    pub script: Vec<u8>,
    /// The height of the block that made it.
    pub height: u32,
    /// A coinbase made it.
    pub coinbase: bool,
    /// What spent it.
    pub spender: Option<SpendSample>,
}

/// The input that spent an output.
#[derive(Clone, Copy, Debug)]
pub struct SpendSample {
    /// The spending transaction.
    pub txid: Txid,
    /// The number of the input.
    pub vin: u32,
    /// The height of its block.
    pub height: u32,
}

/// A script and everything that happened to it on the active branch.
#[derive(Clone, Debug, Default)]
pub struct ScriptSample {
    /// Its bytes.
    pub script: Vec<u8>,
    /// The transactions that pay to it or spend from it, as height and txid, in the chain's order.
    pub history: Vec<(u32, Txid)>,
    /// Its unspent outputs, as value and height.
    pub unspent: BTreeMap<Outpoint, (u64, u32)>,
}

/// The samples of one model.
pub(crate) struct Samples {
    outputs: BTreeMap<Outpoint, OutputSample>,
    output_limit: u64,
    scripts: HashMap<Vec<u8>, ScriptSample>,
    script_limit: u64,
    watched: HashSet<Vec<u8>>,
    watched_words: Vec<u64>,
}

impl Samples {
    pub(crate) fn new(watched: &[Vec<u8>]) -> Self {
        Self {
            outputs: BTreeMap::new(),
            output_limit: u64::MAX,
            scripts: HashMap::new(),
            script_limit: u64::MAX,
            watched: watched.iter().cloned().collect(),
            watched_words: watched.iter().map(|script| script_word(script)).collect(),
        }
    }

    pub(crate) fn create(&mut self, outpoint: &Outpoint, coin: &StoredCoin, place: Place) {
        if let Some(sample) = self.script(coin.script()) {
            sample.touch(place);
            sample.unspent.insert(*outpoint, (coin.value, place.height));
        }
        if outpoint_word(outpoint) < self.output_limit {
            let sample = OutputSample {
                outpoint: *outpoint,
                value: coin.value,
                script: coin.script().to_vec(),
                height: place.height,
                coinbase: coin.coinbase(),
                spender: None,
            };
            self.outputs.insert(*outpoint, sample);
        }
        self.shrink();
    }

    pub(crate) fn spend(&mut self, outpoint: &Outpoint, coin: &StoredCoin, place: Place, vin: u32) {
        if let Some(sample) = self.script(coin.script()) {
            sample.touch(place);
            sample.unspent.remove(outpoint);
        }
        if let Some(sample) = self.output(outpoint) {
            sample.spender = Some(SpendSample { txid: place.txid, vin, height: place.height });
        }
    }

    pub(crate) fn unspend(&mut self, outpoint: &Outpoint, coin: &StoredCoin) {
        if let Some(sample) = self.script(coin.script()) {
            sample.unspent.insert(*outpoint, (coin.value, coin.height()));
        }
        if let Some(sample) = self.output(outpoint) {
            sample.spender = None;
        }
    }

    /// Forgets what happened in the block at `height`.
    pub(crate) fn disconnect(&mut self, height: u32) {
        self.outputs.retain(|_, sample| sample.height < height);
        for sample in self.scripts.values_mut() {
            while sample.history.last().is_some_and(|(last, _)| *last >= height) {
                sample.history.pop();
            }
            sample.unspent.retain(|_, (_, made)| *made < height);
        }
    }

    pub(crate) fn outputs(&self) -> Vec<OutputSample> {
        self.outputs.values().cloned().collect()
    }

    pub(crate) fn scripts(&self) -> Vec<ScriptSample> {
        let used = self.scripts.values().filter(|sample| !sample.history.is_empty());
        let mut scripts: Vec<ScriptSample> = used.cloned().collect();
        scripts.sort_by(|a, b| {
            b.history.len().cmp(&a.history.len()).then_with(|| a.script.cmp(&b.script))
        });
        scripts
    }

    /// The sample of a script, if it is followed.
    fn script(&mut self, script: &[u8]) -> Option<&mut ScriptSample> {
        let word = script_word(script);
        if word >= self.script_limit
            && !(self.watched_words.contains(&word) && self.watched.contains(script))
        {
            return None;
        }
        if !self.scripts.contains_key(script) {
            let sample = ScriptSample { script: script.to_vec(), ..ScriptSample::default() };
            self.scripts.insert(script.to_vec(), sample);
        }
        self.scripts.get_mut(script)
    }

    fn output(&mut self, outpoint: &Outpoint) -> Option<&mut OutputSample> {
        if outpoint_word(outpoint) < self.output_limit {
            self.outputs.get_mut(outpoint)
        } else {
            None
        }
    }

    fn shrink(&mut self) {
        while self.outputs.len() > MAX_OUTPUTS {
            self.output_limit /= 2;
            let limit = self.output_limit;
            self.outputs.retain(|outpoint, _| outpoint_word(outpoint) < limit);
        }
        while self.scripts.len() > MAX_SCRIPTS + self.watched.len() {
            self.script_limit /= 2;
            let limit = self.script_limit;
            let watched = &self.watched;
            self.scripts
                .retain(|script, _| script_word(script) < limit || watched.contains(script));
        }
    }
}

impl ScriptSample {
    fn touch(&mut self, place: Place) {
        if self.history.last() != Some(&(place.height, place.txid)) {
            self.history.push((place.height, place.txid));
        }
    }
}

fn outpoint_word(outpoint: &Outpoint) -> u64 {
    let [a, b, c, d, e, f, g, h, ..] = *outpoint.txid.as_bytes();
    let word = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
    word ^ u64::from(outpoint.vout).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Eight bytes near the end of a script, where every usual kind has a hash or a key. Shorter ones
/// are followed always: pay-to-anchor is a single script.
fn script_word(script: &[u8]) -> u64 {
    let (head, _) = script.split_at(script.len().saturating_sub(2));
    head.last_chunk::<8>().map_or(0, |chunk| u64::from_be_bytes(*chunk))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(height: u32, txid: u8) -> Place {
        Place { height, position: 1, txid: Txid::from_bytes([txid; 32]) }
    }

    #[test]
    fn a_disconnected_block_leaves_no_trace() {
        let script = vec![0x51; 22];
        let mut samples = Samples::new(std::slice::from_ref(&script));
        let coin = StoredCoin::new(5, 1, false, &script);
        let outpoint = Outpoint::new(Txid::from_bytes([1; 32]), 0);
        samples.create(&outpoint, &coin, place(1, 1));
        samples.spend(&outpoint, &coin, place(2, 2), 3);
        assert_eq!(samples.outputs()[0].spender.unwrap().vin, 3);
        assert_eq!(samples.scripts()[0].history.len(), 2);

        samples.unspend(&outpoint, &coin);
        samples.disconnect(2);
        assert!(samples.outputs()[0].spender.is_none());
        assert_eq!(samples.scripts()[0].history.len(), 1);
        assert_eq!(samples.scripts()[0].unspent[&outpoint], (5, 1));
    }

    #[test]
    fn samples_stay_few_and_watched_scripts_stay() {
        let watched = vec![0xff; 25];
        let mut samples = Samples::new(std::slice::from_ref(&watched));
        for number in 0_u32..20_000 {
            let txid = Txid::from_bytes(crate::rng::mix(u64::from(number)));
            let mut script = vec![0x00, 20];
            script.extend_from_slice(&txid.as_bytes()[..20]);
            let place = Place { height: number, position: 0, txid };
            let coin = StoredCoin::new(1, number, false, &script);
            samples.create(&Outpoint::new(txid, 0), &coin, place);
        }
        let coin = StoredCoin::new(1, 9, false, &watched);
        samples.create(&Outpoint::new(Txid::ZERO, 0), &coin, place(9, 0));
        assert!((MAX_OUTPUTS / 4..=MAX_OUTPUTS).contains(&samples.outputs().len()));
        assert!((MAX_SCRIPTS / 4..=MAX_SCRIPTS + 1).contains(&samples.scripts().len()));
        assert!(samples.scripts().iter().any(|sample| sample.script == watched));
    }
}

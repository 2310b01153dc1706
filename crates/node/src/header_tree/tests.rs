//! The tree against a plain model that computes every answer by walking parents.

use proptest::prelude::*;
use varve_consensus::{Ancestors as _, Params};
use varve_types::{Header, Height, Network};

use super::*;
use crate::fixture::{NOW, chain_above, genesis, hash_of, header_above, prove};
use crate::source::HeaderBytes;

fn tree() -> HeaderTree {
    HeaderTree::new(Params::new(Network::Regtest), [7; 16])
}

fn insert_all(tree: &mut HeaderTree, headers: &[HeaderBytes]) -> Vec<HeaderId> {
    headers.iter().map(|header| tree.insert(Header::new(header), NOW).unwrap()).collect()
}

/// The same facts as the tree, and nothing prepared.
struct Model {
    headers: Vec<HeaderBytes>,
    parents: Vec<usize>,
    invalid: Vec<bool>,
    stored: Vec<bool>,
    /// At which step the chain became whole.
    whole: Vec<Option<usize>>,
    steps: usize,
}

impl Model {
    fn new() -> Self {
        Self {
            headers: vec![genesis()],
            parents: vec![0],
            invalid: vec![false],
            stored: vec![true],
            whole: vec![Some(0)],
            steps: 0,
        }
    }

    /// From a header down to genesis.
    fn path(&self, mut at: usize) -> Vec<usize> {
        let mut path = vec![at];
        while at != 0 {
            at = self.parents[at];
            path.push(at);
        }
        path
    }

    fn valid(&self, at: usize) -> bool {
        !self.path(at).iter().any(|below| self.invalid[*below])
    }

    fn update_whole(&mut self) {
        self.steps += 1;
        for at in 0..self.headers.len() {
            if self.whole[at].is_none() && self.path(at).iter().all(|below| self.stored[*below]) {
                self.whole[at] = Some(self.steps);
            }
        }
    }

    /// All headers have the same bits, so the longest chain has the most work.
    fn best_header(&self) -> usize {
        let valid = (0..self.headers.len()).filter(|at| self.valid(*at));
        valid.min_by_key(|at| (std::cmp::Reverse(self.path(*at).len()), *at)).unwrap()
    }

    fn fork(&self, one: usize, other: usize) -> usize {
        let other = self.path(other);
        *self.path(one).iter().find(|at| other.contains(at)).unwrap()
    }
}

/// What happens to a tree. Numbers choose among the headers there are.
#[derive(Clone, Debug)]
enum Step {
    Add(prop::sample::Index),
    Extend(usize),
    Store(prop::sample::Index),
    Invalidate(prop::sample::Index),
    Reconsider(prop::sample::Index),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => any::<prop::sample::Index>().prop_map(Step::Add),
        2 => (1..20_usize).prop_map(Step::Extend),
        6 => any::<prop::sample::Index>().prop_map(Step::Store),
        1 => any::<prop::sample::Index>().prop_map(Step::Invalidate),
        1 => any::<prop::sample::Index>().prop_map(Step::Reconsider),
    ];
    prop::collection::vec(step, 1..60)
}

fn add(tree: &mut HeaderTree, model: &mut Model, parent: usize) {
    let salt = u32::try_from(model.headers.len()).unwrap();
    let header = header_above(&model.headers[parent], salt);
    let inserted = tree.insert(Header::new(&header), NOW);
    if !model.valid(parent) {
        assert!(matches!(inserted, Err(InsertError::Invalid { .. })));
        return;
    }
    assert_eq!(inserted.map(|id| id.0 as usize), Ok(model.headers.len()));
    model.headers.push(header);
    model.parents.push(parent);
    model.invalid.push(false);
    model.stored.push(false);
    model.whole.push(None);
}

fn take(tree: &mut HeaderTree, model: &mut Model, step: &Step) {
    let count = model.headers.len();
    let id = |at: usize| HeaderId(u32::try_from(at).unwrap());
    match step {
        Step::Add(at) => add(tree, model, at.index(count)),
        Step::Extend(by) => {
            for _ in 0..*by {
                let best = model.best_header();
                add(tree, model, best);
            }
        }
        Step::Store(at) => {
            let at = at.index(count);
            tree.mark_stored(id(at));
            model.stored[at] = true;
            model.update_whole();
        }
        Step::Invalidate(at) => {
            let at = at.index(count);
            tree.mark_invalid(id(at), &format!("reason {at}"));
            model.invalid[at] = at != 0;
        }
        Step::Reconsider(at) => {
            let at = at.index(count);
            tree.clear_invalid(id(at));
            model.invalid[at] = false;
        }
    }
}

fn compare(tree: &HeaderTree, model: &Model) {
    let count = model.headers.len();
    let id = |at: usize| HeaderId(u32::try_from(at).unwrap());
    assert_eq!(tree.len(), count);
    assert_eq!(tree.best_header(), id(model.best_header()));
    for at in 0..count {
        let path = model.path(at);
        assert_eq!(tree.find(&hash_of(&model.headers[at])), Some(id(at)));
        assert_eq!(tree.height(id(at)).to_u32() as usize, path.len() - 1);
        assert_eq!(tree.is_whole(id(at)), model.whole[at].is_some());
        let culprit = path.iter().find(|below| model.invalid[**below]);
        let reason = tree.invalid(id(at)).map(|invalid| invalid.reason.to_string());
        assert_eq!(reason, culprit.map(|below| format!("reason {below}")));
        for (height, below) in path.iter().rev().enumerate() {
            let height = Height::new(u32::try_from(height).unwrap());
            assert_eq!(tree.ancestor(id(at), height), Some(id(*below)));
        }
    }
    // The best chain is whole and valid, has the most work, and no other such was whole earlier.
    let key = |at: usize| (model.path(at).len(), std::cmp::Reverse(model.whole[at]));
    let candidates = (0..count).filter(|at| model.valid(*at) && model.whole[*at].is_some());
    let best = tree.best_chain().0 as usize;
    assert!(model.valid(best) && model.whole[best].is_some());
    assert_eq!(candidates.map(key).max(), Some(key(best)));
    // Tips and forks.
    for tip in tree.chain_tips(id(best)) {
        let at = tree.find(&tip.hash).unwrap().0 as usize;
        assert!(at == best || !model.parents[1..].contains(&at));
        let fork = model.fork(at, best);
        assert_eq!(tip.branch_length as usize, model.path(at).len() - model.path(fork).len());
        assert_eq!(tree.fork_point(id(at), id(best)), id(fork));
    }
    let leaves = (0..count).filter(|at| *at == best || !model.parents[1..].contains(at)).count();
    assert_eq!(tree.chain_tips(id(best)).len(), leaves);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_tree_is_the_model(steps in steps()) {
        let (mut tree, mut model) = (tree(), Model::new());
        for step in &steps {
            take(&mut tree, &mut model, step);
        }
        compare(&tree, &model);
    }
}

#[test]
fn of_equals_the_first_stays_until_one_has_more() {
    let mut tree = tree();
    let one = insert_all(&mut tree, &chain_above(&genesis(), 3, 1));
    let other_headers = chain_above(&genesis(), 4, 2);
    let other = insert_all(&mut tree, &other_headers[..3]);
    assert_eq!(tree.best_header(), one[2]);
    // The second branch is whole first: it is the chain, though its headers came later.
    other.iter().chain(&one).for_each(|id| tree.mark_stored(*id));
    assert_eq!((tree.best_header(), tree.best_chain()), (one[2], other[2]));
    tree.mark_invalid(other[0], "bad-txns");
    assert_eq!(tree.best_chain(), one[2]);
    let refused = tree.insert(Header::new(&other_headers[3]), NOW).unwrap_err();
    assert!(refused.is_blameworthy() && refused.to_string().contains("bad-txns"), "{refused}");
    tree.clear_invalid(other[0]);
    assert_eq!(tree.best_chain(), other[2]);
    let last = tree.insert(Header::new(&other_headers[3]), NOW).unwrap();
    assert_eq!((tree.best_header(), tree.best_chain()), (last, other[2]));
    tree.mark_stored(last);
    assert_eq!(tree.best_chain(), last);
}

#[test]
fn refusals_say_who_is_to_blame() {
    let mut tree = tree();
    let [first, second] = chain_above(&genesis(), 2, 1).try_into().unwrap();
    let orphan = tree.insert(Header::new(&second), NOW).unwrap_err();
    assert!(matches!(orphan, InsertError::Orphan { .. }) && !orphan.is_blameworthy());
    let mut early = first;
    early[68..72].copy_from_slice(&0_u32.to_le_bytes());
    prove(&mut early);
    let refused = tree.insert(Header::new(&early), NOW).unwrap_err();
    assert!(refused.is_blameworthy(), "{refused}");
    let ahead = tree.insert(Header::new(&first), 0).unwrap_err();
    assert!(!ahead.is_blameworthy(), "{ahead}");
    insert_all(&mut tree, &[first, second]);
    assert_eq!(tree.len(), 3);
}

#[test]
fn locators_and_windows() {
    let mut tree = tree();
    let headers = chain_above(&genesis(), 1000, 1);
    let ids = insert_all(&mut tree, &headers);
    let tip = *ids.last().unwrap();
    let locator = tree.locator(tip);
    let heights: Vec<_> =
        locator.iter().map(|hash| tree.height(tree.find(hash).unwrap()).to_u32()).collect();
    assert_eq!(heights[..12], [1000, 999, 998, 997, 996, 995, 994, 993, 992, 991, 990, 989]);
    assert_eq!(heights[12..], [987, 983, 975, 959, 927, 863, 735, 479, 0]);
    let window = |first, count| tree.window(tip, Height::new(first), count);
    assert_eq!((window(1, 3), window(999, 10)), (ids[..3].to_vec(), ids[998..].to_vec()));
    assert_eq!((window(1001, 5), window(5, 0)), (vec![], vec![]));
    tree.mark_stored(ids[1]);
    assert_eq!(tree.to_fetch(tree.best_header(), 4), [ids[0], ids[2], ids[3]]);
    tree.mark_stored(ids[0]);
    assert_eq!(tree.to_fetch(tree.best_header(), 4), ids[2..6], "above those that are whole");
    ids[2..999].iter().for_each(|id| tree.mark_stored(*id));
    assert_eq!(tree.to_fetch(tree.best_header(), 4), [tip]);
    tree.mark_stored(tip);
    assert_eq!(tree.to_fetch(tree.best_header(), 4), []);
    let branch = tree.branch(ids[500]);
    for height in [501, 3, 77, 76, 75, 400, 0] {
        let id = tree.ancestor(tip, Height::new(height)).unwrap();
        assert_eq!(branch.ancestor(Height::new(height)).unwrap().hash, tree.hash(id));
    }
    assert_eq!(branch.ancestor(Height::new(502)), None);
    assert!(tree.is_on_branch(ids[3], tip) && !tree.is_on_branch(tip, ids[3]));
}

#[test]
fn rows_of_a_store_rebuild_the_tree() {
    let mut tree = tree();
    let mut headers = chain_above(&genesis(), 50, 1);
    headers.extend(chain_above(&headers[20].clone(), 40, 2));
    insert_all(&mut tree, &headers);
    let mut again = HeaderTree::new(Params::new(Network::Regtest), [9; 16]);
    for header in &headers {
        again.restore(Header::new(header), hash_of(header)).unwrap();
    }
    assert_eq!(again.best_header(), tree.best_header());
    assert_eq!(again.chain_tips(tree.best_header()), tree.chain_tips(tree.best_header()));
    assert_eq!(again.work(again.best_header()), tree.work(tree.best_header()));
}

#[test]
fn skips_are_those_that_are_drawn_and_walks_are_short() {
    let mut tree = tree();
    let ids = insert_all(&mut tree, &chain_above(&genesis(), 5000, 1));
    let skip = |id: HeaderId| tree.height(tree.row(id).skip).to_u32();
    let drawn = [0, 0, 1, 0, 3, 4, 3, 0, 7, 8, 7, 10, 11, 10, 7, 0];
    assert_eq!(tree.ids().take(16).map(skip).collect::<Vec<_>>(), drawn);
    let longest = (0..5000).map(|height| {
        let (mut at, mut steps) = (*ids.last().unwrap(), 0);
        while tree.height(at).to_u32() > height {
            let row = tree.row(at);
            at = if skip(at) >= height { row.skip } else { row.parent };
            steps += 1;
        }
        steps
    });
    assert!(longest.max().unwrap() <= 36, "three for each of twelve doublings");
}

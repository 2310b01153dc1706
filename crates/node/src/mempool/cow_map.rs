//! An ordered map that is copied by sharing: a B+tree whose nodes are reference counted.
//!
//! ```text
//! version 7 ──► root ──► inner ──► leaf │ leaf │ leaf
//!                  \        \______________/ shared
//! version 8 ──► root' ─► inner' ─► leaf'            one path is new
//! ```
//!
//! A clone is one reference count. A change copies the nodes on the path to its leaf, unless no
//! other clone holds them: the first change after a clone copies three nodes of about 1.5 KB at
//! 300,000 keys, and a batch of changes copies each node at most once. Keys are compared, never
//! hashed, so no choice of keys makes the tree deeper than its size.
//!
//! *Insert* goes down to the leaf and splits full nodes on the way back. *Remove* merges a node
//! that is less than a quarter full with a neighbour when both fit into three quarters of a node,
//! so nodes do not stay nearly empty. A separator is the smallest key that its child had when the
//! separator was set: all keys of the child are at or above it, all keys before the child below it.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// Entries of a full node. Larger nodes copy more for a change, smaller ones hold more pointers.
const FULL: usize = 32;
/// A node below this is merged with a neighbour.
const SPARSE: usize = FULL / 4;
/// The most entries that a merge makes: the next insert does not split it again.
const MERGED: usize = FULL * 3 / 4;

/// An ordered map with cheap clones.
#[derive(Clone)]
pub(super) struct CowMap<K, V> {
    root: Arc<Node<K, V>>,
    len: usize,
}

#[derive(Clone)]
enum Node<K, V> {
    Leaf(Vec<(K, V)>),
    Inner(Vec<(K, Arc<Self>)>),
}

/// What a node passes up: a new right sibling with its separator.
type Split<K, V> = Option<(K, Arc<Node<K, V>>)>;

impl<K, V> Default for CowMap<K, V> {
    fn default() -> Self {
        Self { root: Arc::new(Node::Leaf(Vec::new())), len: 0 }
    }
}

impl<K, V> fmt::Debug for CowMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CowMap").field("len", &self.len).finish_non_exhaustive()
    }
}

impl<K: Ord + Clone, V: Clone> CowMap<K, V> {
    #[cfg(test)]
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    pub(super) fn get(&self, key: &K) -> Option<&V> {
        let mut node = &*self.root;
        loop {
            match node {
                Node::Inner(children) => node = &children.get(child_of(children, key))?.1,
                Node::Leaf(entries) => {
                    let at = entries.binary_search_by(|(other, _)| other.cmp(key)).ok()?;
                    return entries.get(at).map(|(_, value)| value);
                }
            }
        }
    }

    pub(super) fn contains(&self, key: &K) -> bool {
        self.get(key).is_some()
    }

    /// Sets the value of a key. Returns the value before.
    pub(super) fn insert(&mut self, key: K, value: V) -> Option<V> {
        let (before, split) = insert(&mut self.root, key, value);
        if let Some((separator, right)) = split {
            let left = Arc::clone(&self.root);
            let first = first_key(&left).expect("a node that was split has entries").clone();
            self.root = Arc::new(Node::Inner(vec![(first, left), (separator, right)]));
        }
        self.len += usize::from(before.is_none());
        before
    }

    /// Removes a key. Returns its value.
    pub(super) fn remove(&mut self, key: &K) -> Option<V> {
        // Looking first keeps the shared nodes when there is nothing to remove.
        self.get(key)?;
        let removed = remove(&mut self.root, key)?;
        self.len -= 1;
        while let Node::Inner(children) = &*self.root {
            match children.as_slice() {
                [] => self.root = Arc::new(Node::Leaf(Vec::new())),
                [(_, only)] => self.root = Arc::clone(only),
                _ => break,
            }
        }
        Some(removed)
    }

    /// The entries in order.
    pub(super) fn iter(&self) -> Iter<'_, K, V> {
        let mut iter = Iter { inner: Vec::new(), leaf: [].iter() };
        iter.open(&self.root, None);
        iter
    }

    /// The entries at or above a key, in order.
    pub(super) fn from(&self, key: &K) -> Iter<'_, K, V> {
        let mut iter = Iter { inner: Vec::new(), leaf: [].iter() };
        iter.open(&self.root, Some(key));
        iter
    }

    /// The entries, the last first.
    pub(super) fn iter_back(&self) -> IterBack<'_, K, V> {
        let mut iter = IterBack { inner: Vec::new(), leaf: [].iter() };
        iter.open(&self.root);
        iter
    }
}

/// The child whose subtree has the key, if any has.
fn child_of<K: Ord, C>(children: &[(K, C)], key: &K) -> usize {
    children.partition_point(|(separator, _)| separator <= key).saturating_sub(1)
}

fn first_key<K, V>(node: &Node<K, V>) -> Option<&K> {
    match node {
        Node::Leaf(entries) => entries.first().map(|(key, _)| key),
        Node::Inner(children) => children.first().map(|(key, _)| key),
    }
}

fn insert<K: Ord + Clone, V: Clone>(
    node: &mut Arc<Node<K, V>>,
    key: K,
    value: V,
) -> (Option<V>, Split<K, V>) {
    match Arc::make_mut(node) {
        Node::Leaf(entries) => match entries.binary_search_by(|(other, _)| other.cmp(&key)) {
            Ok(at) => {
                let place = entries.get_mut(at).expect("found there");
                (Some(std::mem::replace(&mut place.1, value)), None)
            }
            Err(at) => {
                make_room(entries);
                entries.insert(at, (key, value));
                (None, split(entries, Node::Leaf))
            }
        },
        Node::Inner(children) => {
            let at = child_of(children, &key);
            let (separator, child) = children.get_mut(at).expect("an inner node has children");
            if key < *separator {
                *separator = key.clone();
            }
            let (before, new) = insert(child, key, value);
            if let Some(new) = new {
                make_room(children);
                children.insert(at + 1, new);
            }
            (before, split(children, Node::Inner))
        }
    }
}

/// Grows by a few places, not to the double: most nodes are copied at their exact size.
fn make_room<T>(entries: &mut Vec<T>) {
    if entries.len() == entries.capacity() {
        entries.reserve_exact(4);
    }
}

/// Cuts the upper half off a node that is too full.
fn split<K: Clone, V, C>(
    entries: &mut Vec<(K, C)>,
    node: impl FnOnce(Vec<(K, C)>) -> Node<K, V>,
) -> Split<K, V> {
    if entries.len() <= FULL {
        return None;
    }
    let upper = entries.split_off(FULL / 2);
    let separator = upper.first()?.0.clone();
    Some((separator, Arc::new(node(upper))))
}

fn remove<K: Ord + Clone, V: Clone>(node: &mut Arc<Node<K, V>>, key: &K) -> Option<V> {
    match Arc::make_mut(node) {
        Node::Leaf(entries) => {
            let at = entries.binary_search_by(|(other, _)| other.cmp(key)).ok()?;
            Some(entries.remove(at).1)
        }
        Node::Inner(children) => {
            let at = child_of(children, key);
            let removed = remove(&mut children.get_mut(at)?.1, key)?;
            tidy(children, at);
            Some(removed)
        }
    }
}

/// Drops a child that is empty (its parent drops a node without children), and merges one that is
/// sparse with a neighbour.
fn tidy<K: Clone, V: Clone>(children: &mut Vec<(K, Arc<Node<K, V>>)>, at: usize) {
    let size = |place: usize| children.get(place).map(|(_, child)| child.size());
    let Some(len) = size(at).filter(|len| *len < SPARSE) else { return };
    if len == 0 {
        children.remove(at);
        return;
    }
    let fits = |other: Option<usize>| other.is_some_and(|other| other + len <= MERGED);
    let left = if fits(size(at + 1)) {
        at
    } else if at > 0 && fits(size(at - 1)) {
        at - 1
    } else {
        return;
    };
    let (_, right) = children.remove(left + 1);
    if let Some((_, left)) = children.get_mut(left) {
        merge(Arc::make_mut(left), Arc::unwrap_or_clone(right));
    }
}

fn merge<K, V>(left: &mut Node<K, V>, right: Node<K, V>) {
    match (left, right) {
        (Node::Leaf(left), Node::Leaf(right)) => left.extend(right),
        (Node::Inner(left), Node::Inner(right)) => left.extend(right),
        _ => unreachable!("all leaves have the same depth"),
    }
}

impl<K, V> Node<K, V> {
    const fn size(&self) -> usize {
        match self {
            Self::Leaf(entries) => entries.len(),
            Self::Inner(children) => children.len(),
        }
    }
}

type Children<'a, K, V> = std::slice::Iter<'a, (K, Arc<Node<K, V>>)>;

/// Entries in order.
pub(super) struct Iter<'a, K, V> {
    inner: Vec<Children<'a, K, V>>,
    leaf: std::slice::Iter<'a, (K, V)>,
}

impl<'a, K: Ord, V> Iter<'a, K, V> {
    /// Goes down to the first leaf, or to the one that has the first key at or above `key`.
    fn open(&mut self, mut node: &'a Node<K, V>, key: Option<&K>) {
        loop {
            match node {
                Node::Leaf(entries) => {
                    let below = |(other, _): &(K, V)| {
                        key.is_some_and(|key| other.cmp(key) == Ordering::Less)
                    };
                    let start = entries.partition_point(below);
                    self.leaf = entries.get(start..).unwrap_or_default().iter();
                    return;
                }
                Node::Inner(children) => {
                    let start = key.map_or(0, |key| child_of(children, key));
                    let mut rest = children.get(start..).unwrap_or_default().iter();
                    let Some((_, child)) = rest.next() else { return };
                    self.inner.push(rest);
                    node = child;
                }
            }
        }
    }
}

impl<'a, K: Ord, V> Iterator for Iter<'a, K, V> {
    type Item = (&'a K, &'a V);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some((key, value)) = self.leaf.next() {
                return Some((key, value));
            }
            match self.inner.last_mut()?.next() {
                Some((_, child)) => self.open(child, None),
                None => drop(self.inner.pop()),
            }
        }
    }
}

/// Entries in reverse order.
pub(super) struct IterBack<'a, K, V> {
    inner: Vec<Children<'a, K, V>>,
    leaf: std::slice::Iter<'a, (K, V)>,
}

impl<'a, K, V> IterBack<'a, K, V> {
    fn open(&mut self, mut node: &'a Node<K, V>) {
        loop {
            match node {
                Node::Leaf(entries) => {
                    self.leaf = entries.iter();
                    return;
                }
                Node::Inner(children) => {
                    let mut rest = children.iter();
                    let Some((_, child)) = rest.next_back() else { return };
                    self.inner.push(rest);
                    node = child;
                }
            }
        }
    }
}

impl<'a, K, V> Iterator for IterBack<'a, K, V> {
    type Item = (&'a K, &'a V);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some((key, value)) = self.leaf.next_back() {
                return Some((key, value));
            }
            match self.inner.last_mut()?.next_back() {
                Some((_, child)) => self.open(child),
                None => drop(self.inner.pop()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn check(map: &CowMap<u16, u32>, model: &BTreeMap<u16, u32>) {
        assert_eq!(map.len(), model.len());
        assert!(map.iter().eq(model.iter()));
        assert!(map.iter_back().eq(model.iter().rev()));
        for key in (0..=u16::MAX).step_by(997) {
            assert_eq!(map.get(&key), model.get(&key));
            assert!(map.from(&key).eq(model.range(key..)));
        }
    }

    proptest! {
        #[test]
        fn agrees_with_a_plain_map_and_clones_keep_their_moment(
            changes in proptest::collection::vec((0..2_000_u16, any::<bool>()), 0..6_000),
        ) {
            let (mut map, mut model) = (CowMap::default(), BTreeMap::new());
            let mut held = Vec::new();
            for (step, (key, put)) in (0_u32..).zip(changes) {
                if put {
                    prop_assert_eq!(map.insert(key, step), model.insert(key, step));
                } else {
                    prop_assert_eq!(map.remove(&key), model.remove(&key));
                }
                if step % 1_000 == 0 {
                    held.push((map.clone(), model.clone()));
                }
            }
            check(&map, &model);
            held.iter().for_each(|(map, model)| check(map, model));
        }
    }

    #[test]
    fn removing_everything_leaves_one_empty_leaf() {
        let mut map = CowMap::default();
        (0..10_000_u32).for_each(|key| assert!(map.insert(key, ()).is_none()));
        let kept = map.clone();
        (0..10_000_u32).for_each(|key| assert!(map.remove(&key).is_some()));
        assert_eq!((map.len(), map.iter().count()), (0, 0));
        assert!(matches!(&*map.root, Node::Leaf(entries) if entries.is_empty()));
        assert_eq!(kept.iter().count(), 10_000);
    }

    #[test]
    fn a_map_that_shrinks_does_not_keep_sparse_nodes() {
        let mut map = CowMap::default();
        (0..32_000_u32).for_each(|key| assert!(map.insert(key, ()).is_none()));
        for key in (0..32_000_u32).filter(|key| key % 32 != 0) {
            assert!(map.remove(&key).is_some());
        }
        assert!(leaves(&map.root) * SPARSE <= 2 * map.len(), "{} leaves", leaves(&map.root));
    }

    fn leaves<K, V>(node: &Node<K, V>) -> usize {
        match node {
            Node::Leaf(_) => 1,
            Node::Inner(children) => children.iter().map(|(_, child)| leaves(child)).sum(),
        }
    }
}

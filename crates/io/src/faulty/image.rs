//! Files and directories in memory, and the changes made to them.

use std::collections::BTreeMap;
use std::sync::Arc;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FileId(pub(super) usize);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DirId(pub(super) usize);

impl DirId {
    pub(super) const ROOT: Self = Self(0);
}

/// What a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Node {
    File(FileId),
    Dir(DirId),
}

/// One operation of the log.
#[derive(Debug, Clone)]
pub(super) enum Change {
    Write {
        file: FileId,
        at: u64,
        bytes: Arc<[u8]>,
    },
    Truncate {
        file: FileId,
        len: u64,
    },
    /// Bit rot: a change that no caller made, durable at once.
    Flip {
        file: FileId,
        at: u64,
        mask: u8,
    },
    Sync {
        file: FileId,
        done: bool,
    },
    Create {
        dir: DirId,
        name: String,
        file: FileId,
    },
    Rename {
        dir: DirId,
        from: String,
        to: String,
        file: FileId,
    },
    Remove {
        dir: DirId,
        name: String,
    },
    MakeDir {
        dir: DirId,
        name: String,
        made: DirId,
    },
    SyncDir {
        dir: DirId,
        done: bool,
    },
}

pub(super) type Names = BTreeMap<String, Node>;

/// The bytes of a file, shared by all images in which they are the same.
pub(super) type Content = Arc<Vec<u8>>;

/// The whole state of a disk at one moment.
#[derive(Debug, Clone)]
pub(super) struct Image {
    files: Vec<Content>,
    dirs: Vec<Names>,
}

impl Default for Image {
    /// An empty root directory.
    fn default() -> Self {
        Self { files: Vec::new(), dirs: vec![Names::new()] }
    }
}

impl Image {
    pub(super) const fn new(files: Vec<Content>, dirs: Vec<Names>) -> Self {
        Self { files, dirs }
    }

    pub(super) fn files(&self) -> &[Content] {
        &self.files
    }

    pub(super) fn dirs(&self) -> &[Names] {
        &self.dirs
    }

    pub(super) fn file_ids(&self) -> impl Iterator<Item = FileId> {
        (0..self.files.len()).map(FileId)
    }

    pub(super) const fn next_file(&self) -> FileId {
        FileId(self.files.len())
    }

    pub(super) const fn next_dir(&self) -> DirId {
        DirId(self.dirs.len())
    }

    pub(super) fn lookup(&self, dir: DirId, name: &str) -> Option<Node> {
        self.dirs.get(dir.0)?.get(name).copied()
    }

    pub(super) fn content(&self, file: FileId) -> &[u8] {
        self.files.get(file.0).map_or(&[], |content| content.as_slice())
    }

    pub(super) fn files_in(&self, dir: DirId) -> Vec<String> {
        let names = self.dirs.get(dir.0).into_iter().flatten();
        let files = names.filter(|(_, node)| matches!(node, Node::File(_)));
        files.map(|(name, _)| name.clone()).collect()
    }

    pub(super) fn dirs_in(&self, dir: DirId) -> Vec<String> {
        let names = self.dirs.get(dir.0).into_iter().flatten();
        let dirs = names.filter(|(_, node)| matches!(node, Node::Dir(_)));
        dirs.map(|(name, _)| name.clone()).collect()
    }

    /// The bytes of all files that have a name.
    pub(super) fn used(&self) -> u64 {
        let nodes = self.dirs.iter().flat_map(BTreeMap::values);
        let sizes = nodes.map(|node| match node {
            Node::File(file) => self.content(*file).len() as u64,
            Node::Dir(_) => 0,
        });
        sizes.sum()
    }

    /// Makes a change as a reader of a running system sees it.
    pub(super) fn apply(&mut self, change: &Change) {
        match change {
            Change::Create { file, .. } => {
                debug_assert_eq!(*file, self.next_file());
                self.files.push(Content::default());
            }
            Change::MakeDir { made, .. } => {
                debug_assert_eq!(*made, self.next_dir());
                self.dirs.push(Names::new());
            }
            _ => {}
        }
        if let Some(content) = change.file().and_then(|file| self.files.get_mut(file.0)) {
            change_content(content, change);
        }
        if let Some(names) = change.dir().and_then(|dir| self.dirs.get_mut(dir.0)) {
            change_names(names, change);
        }
    }
}

impl Change {
    /// The file whose content this concerns.
    pub(super) const fn file(&self) -> Option<FileId> {
        match self {
            Self::Write { file, .. }
            | Self::Truncate { file, .. }
            | Self::Flip { file, .. }
            | Self::Sync { file, .. } => Some(*file),
            _ => None,
        }
    }

    /// The directory whose names this concerns.
    pub(super) const fn dir(&self) -> Option<DirId> {
        match self {
            Self::Create { dir, .. }
            | Self::Rename { dir, .. }
            | Self::Remove { dir, .. }
            | Self::MakeDir { dir, .. }
            | Self::SyncDir { dir, .. } => Some(*dir),
            _ => None,
        }
    }
}

/// Applies a change of content in full.
pub(super) fn change_content(content: &mut Content, change: &Change) {
    if matches!(change, Change::Sync { .. }) {
        return;
    }
    let content = Arc::make_mut(content);
    match change {
        Change::Write { at, bytes, .. } => overwrite(content, position(*at), bytes),
        Change::Truncate { len, .. } => content.resize(position(*len), 0),
        Change::Flip { at, mask, .. } => {
            if let Some(byte) = content.get_mut(position(*at)) {
                *byte ^= mask;
            }
        }
        _ => {}
    }
}

/// Applies a change of names in full.
pub(super) fn change_names(names: &mut Names, change: &Change) {
    match change {
        Change::Create { name, file, .. } => _ = names.insert(name.clone(), Node::File(*file)),
        Change::MakeDir { name, made, .. } => _ = names.insert(name.clone(), Node::Dir(*made)),
        Change::Remove { name, .. } => _ = names.remove(name),
        Change::Rename { from, to, file, .. } => {
            names.remove(from);
            names.insert(to.clone(), Node::File(*file));
        }
        _ => {}
    }
}

/// Puts `bytes` at `at`, filling any gap after the old end with zeroes.
pub(super) fn overwrite(content: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    let end = at + bytes.len();
    if content.len() < end {
        content.resize(end, 0);
    }
    if let Some(place) = content.get_mut(at..end) {
        place.copy_from_slice(bytes);
    }
}

/// A file position as an index; files in memory are within it.
pub(super) fn position(at: u64) -> usize {
    usize::try_from(at).expect("a file held in memory has positions that fit")
}

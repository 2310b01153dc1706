//! The size of each table on disk.

use varve_io::{Access, Caching};

use super::MmapBackend;
use crate::backend::{Result, TableSize};
use crate::primitive::Error;
use crate::search::SearchSize;

impl MmapBackend {
    /// The size of every table, as far as it is saved.
    pub(super) fn table_sizes(&self) -> Result<Vec<TableSize>> {
        let tables = &self.tables;
        let rows = [
            ("header", tables.header.rows()),
            ("block", tables.blocks.count()),
            ("block_tx", tables.blocks.count()),
            ("tx_len", self.txs),
            ("filter", tables.filters.len()),
            ("filter_at", tables.filters.len()),
            ("tx_state", tables.tx_state.rows()),
            ("candidate", self.candidate.reader().len()),
            ("confirmed", self.confirmed.reader().len()),
            ("block_state", self.block_state.reader().len()),
        ];
        let size = |(name, rows)| {
            let (body, head) = self.file_sizes(name)?;
            Ok(TableSize { name, rows, body, head, buckets: head / 8 })
        };
        let searches = self.searches.sizes().map(|(name, size)| {
            let SearchSize { rows, bytes: body, index: head, .. } = size;
            Ok(TableSize { name, rows, body, head, buckets: 0 })
        });
        rows.into_iter().map(size).chain(searches).collect()
    }

    /// The bytes of a table's files: body and head.
    fn file_sizes(&self, name: &str) -> Result<(u64, u64)> {
        let (mut body, mut head) = (0, 0);
        for file in self.storage.list().map_err(Error::from)? {
            let Some(rest) = file.strip_prefix(name) else { continue };
            let of_body = rest.starts_with('-');
            if of_body || rest.starts_with('.') {
                let found = self.storage.open(&file, Access::Read, Caching::Buffered);
                let size = found.and_then(|file| file.size()).map_err(Error::from)?;
                *(if of_body { &mut body } else { &mut head }) += size;
            }
        }
        Ok((body, head))
    }
}

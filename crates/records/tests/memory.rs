//! The memory engine keeps the contract.

varve_records::engine_contract!(varve_records::MemoryDisk::default());

//! The history table against a brute-force model of the chain: by chance, through reorganisations,
//! with power cuts, on failing and rotten disks; and its figures.

mod busy;
mod crash;
mod life;
mod measure;
mod rig;

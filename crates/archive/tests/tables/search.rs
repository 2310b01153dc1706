//! Search tables against a plain set of rows: by chance, with power cuts, on failing and rotten
//! disks, and while threads read.

mod crash;
mod cursor;
mod damage;
mod life;
mod measure;
mod rig;
mod threads;

//! The commands, one file each.

pub(crate) mod agent;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod explain;
pub(crate) mod hops;
pub(crate) mod lab;
pub(crate) mod package_files;
pub(crate) mod test;
pub(crate) mod tune;

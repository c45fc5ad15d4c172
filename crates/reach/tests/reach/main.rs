//! Machines reached for real: agents as child processes, in network namespaces, and over an OpenSSH server.

mod faults;
mod local;
mod namespaces;
mod ssh;
mod support;

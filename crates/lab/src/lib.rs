//! Practice roads in network namespaces.

//! How results look: terminal and JSON.

//! The `dealer-loadgen` command.
fn main() {}

//! The `dealer-sim` command.
fn main() {}

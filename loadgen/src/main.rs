//! The `dealer-loadgen` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(dealer_loadgen::main(std::env::args_os()))
}

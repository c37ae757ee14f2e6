//! The `dealer-sim` command: reads the command line, runs, and ends with the code that says how it went.

use std::process::ExitCode;

fn main() -> ExitCode {
    dealer_sim::run::main(std::env::args_os())
}

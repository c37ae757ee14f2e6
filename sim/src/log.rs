//! The log on standard error, of both programs: `--log` says its format, `RUST_LOG` how much of it there is.

use std::io::{self, Write};

use clap::ValueEnum;

/// `--log`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// A line a person reads.
    Text,
    /// A JSON object a line.
    Json,
}

/// Standard error. A reader that is gone must not end the program: what cannot be written is dropped.
struct Log;

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        _ = io::stderr().write_all(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Starts the log of this process: warnings and worse, unless `RUST_LOG` says otherwise.
pub fn start(format: LogFormat) {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn"));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(|| Log);
    // A log that somebody else has set up already is as good.
    _ = match format {
        LogFormat::Text => builder.try_init(),
        LogFormat::Json => builder.json().try_init(),
    };
}

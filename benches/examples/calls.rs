//! Makes so many calls, with or without the journal, for a tool that counts instructions: `calls COUNT with|without`.

use benches::{Bench, body, search};
use bytes::Bytes;
use dealer_sim::protocol::Skill;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<_> = std::env::args().collect();
    let [_, count, journal] = &arguments[..] else { return Err("usage: calls COUNT with|without".into()) };
    let bench = Bench::new(500)?;
    let mut bench = if journal == "with" { bench.with_journal() } else { bench };
    let body = Bytes::from(body(Skill::InventorySearch, &search()));
    let bytes: usize = (0..count.parse::<u64>()?).map(|_| bench.serve(&body).len()).sum();
    println!("{bytes} bytes");
    Ok(())
}

//! Makes so many calls of a skill, with or without the journal, for a tool that counts instructions:
//! `calls COUNT with|without [SKILL]`.
//! `calls COUNT pairs` times both in turn, so that a machine's drift falls on both, and prints the median of the differences.
//! `calls COUNT floor` times dispatch (no journal, no socket) and the bare borrowed parse of the same request in turn, and prints
//! the median of the ratios.

use std::hint::black_box;
use std::time::Instant;

use benches::{Bench, body, borrowed, calls, lead, search};
use bytes::Bytes;
use dealer_sim::protocol::Skill;
use serde_json::json;

/// Calls that are timed together.
const ROUND: u32 = 200;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let (count, what, named) = match arguments[..] {
        [count, what] => (count, what, "inventory.search"),
        [count, what, named] => (count, what, named),
        _ => return Err("usage: calls COUNT with|without|pairs|floor [SKILL]".into()),
    };
    let count: u32 = count.parse()?;
    if what == "pairs" {
        return pairs(count);
    }
    if what == "floor" {
        return floor(count);
    }
    let bench = Bench::new(500)?;
    let mut bench = if what == "with" { bench.with_journal() } else { bench };
    let (skill, payload) =
        calls(&bench.vin()).into_iter().find(|(skill, _)| skill.id() == named).ok_or("no such skill")?;
    let bytes: usize = if skill == Skill::LeadSubmit {
        // Each lead is one of its own: its body is made here too, which costs the same on every day.
        (0..count).map(|n| bench.serve(&body(skill, &lead(n.into())).into()).len()).sum()
    } else {
        let body = Bytes::from(body(skill, &payload));
        (0..count).map(|_| bench.serve(&body).len()).sum()
    };
    println!("{bytes} bytes");
    Ok(())
}

fn pairs(count: u32) -> Result<(), Box<dyn std::error::Error>> {
    for (skill, payload) in calls(&Bench::new(500)?.vin()) {
        let body = Bytes::from(body(skill, &payload));
        let (mut without, mut with) = (Bench::new(500)?, Bench::new(500)?.with_journal());
        // Full before it is measured.
        (0..20_000).for_each(|_| _ = with.serve(&body));
        let mut found: Vec<(f64, f64)> = Vec::new();
        for _ in 0..count.div_ceil(ROUND) {
            let without = round(&mut without, &body);
            found.push((without, round(&mut with, &body) - without));
        }
        println!(
            "{}: {:.0} ns a call, the journal adds {:.0} ns",
            skill.id(),
            median(&found, |it| it.0),
            median(&found, |it| it.1)
        );
    }
    Ok(())
}

/// What dispatch takes beside the least that anybody who reads the request has to do.
fn floor(count: u32) -> Result<(), Box<dyn std::error::Error>> {
    type Parse = fn(&str) -> serde_json::Result<usize>;
    let bench = Bench::new(500)?;
    let vehicle =
        body(Skill::InventoryVehicle, &json!({ "type": "inventory.vehicle.request", "vin": bench.vin() }));
    let search = body(Skill::InventorySearch, &search());
    let calls: [(&str, Bench, &[u8], Parse, &str); 3] = [
        ("inventory.vehicle", bench, &vehicle, borrowed::vehicle, "\"vehicle_type\""),
        ("inventory.search, 20 of 500", Bench::new(500)?, &search, borrowed::search, "\"vehicles\""),
        (
            "a refused header",
            Bench::new(500)?.with_conflicting_headers(),
            &search,
            borrowed::search,
            "-32008",
        ),
    ];
    for (name, mut bench, body, parse, part) in calls {
        let reply = String::from_utf8_lossy(bench.call(body)).into_owned();
        if !reply.contains(part) {
            return Err(format!("{name} was answered with {reply}").into());
        }
        let text = std::str::from_utf8(body)?;
        parse(text)?;
        let mut found = Vec::new();
        for _ in 0..count.div_ceil(ROUND) {
            let bare = timed(|| _ = black_box(parse(black_box(text))));
            found.push((timed(|| _ = black_box(bench.call(black_box(body)).len())), bare));
        }
        println!(
            "{name}: {:.0} ns, bare borrowed parse {:.0} ns, {:.2} times",
            median(&found, |it| it.0),
            median(&found, |it| it.1),
            median(&found, |it| it.0 / it.1)
        );
    }
    Ok(())
}

fn median(found: &[(f64, f64)], of: fn(&(f64, f64)) -> f64) -> f64 {
    let mut values: Vec<f64> = found.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Nanoseconds a call.
fn round(bench: &mut Bench, body: &Bytes) -> f64 {
    timed(|| _ = bench.serve(body))
}

#[expect(clippy::disallowed_methods, reason = "a measurement")]
fn timed(mut call: impl FnMut()) -> f64 {
    let begun = Instant::now();
    (0..ROUND).for_each(|_| call());
    begun.elapsed().as_nanos() as f64 / f64::from(ROUND)
}

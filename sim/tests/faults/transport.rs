//! Deliveries over a socket: every byte, its time, and the end, as the effect's script has them, by a reader of scripts that
//! shares nothing with the server's.

use std::time::Duration;

use dealer_sim::faults::call::parse_effects;
use dealer_sim::faults::{Apply, Draw, EffectInfo, Script, Step, registry};
use dealer_sim::stable::stable_hash;

use super::behaviours::has_lead;
use super::play::play;
use super::support::{self, Sim};
use super::talk::{Asked, End, still_reads};
use super::{FROZEN, samples};

/// A dealer that takes magic values and its twin that does not; neither has a header field that the other has not.
pub(crate) struct Twins {
    faulted: Sim,
    plain: Sim,
}

impl Twins {
    pub(crate) fn start() -> Twins {
        let faulted = Sim::start(&[&FROZEN[..], &["--no-fault-headers"]].concat());
        let plain = Sim::start(&[&FROZEN[..], &["--no-fault-headers", "--no-magic"]].concat());
        Twins { faulted, plain }
    }
}

/// Arguments that keep a test short or make a rate easy to see.
const ARGUMENTS: &[(&str, &str)] = &[
    ("accept_delay", "(200ms)"),
    ("slow_close", "(300ms)"),
    ("first_byte_delay", "(200ms)"),
    ("pause_in_body", "(at=64, pause=300ms)"),
    ("drip", "(bytes=16, every=20ms)"),
    ("drip_body", "(bytes=10, every=20ms)"),
    ("bandwidth", "(per_second=1KiB)"),
    ("slices", "(min=1, max=40, every=10ms)"),
    ("http_head_then_body", "(200ms)"),
];

/// A busy machine may be late by this; early is nobody ever.
const LATE: Duration = Duration::from_millis(200);

/// Asserts what a client sees of a delivery.
pub(crate) fn check(effect: &'static EffectInfo, twins: &Twins) {
    let name = effect.name;
    let arguments = ARGUMENTS.iter().find(|(known, _)| *known == name).map_or("", |(_, text)| text);
    let call = format!("{name}{arguments}");
    let magic = format!("sim:{call}:k");
    let mut lead = support::lead(name);
    lead["idempotency_key"] = magic.as_str().into();
    let body = support::call("lead-submit", &lead).to_string();
    let fields = [("X-Sim-Key", name)];
    let ask = |sim: &Sim| Asked { url: &sim.url(), body: Some(&body), fields: &fields, keep: true }.send();
    let (_, before) = ask(&twins.plain);
    assert_eq!((before.status(), before.end), (200, End::Open));

    // The dealer draws from the seed, the trigger and the request's stable key.
    let mut draw = Draw::new(42, &format!("magic:{magic}"), stable_hash(2, name.as_bytes()), 0);
    let (script, loses) = script_of(&call, &mut draw);
    let reply = dateless(&before.bytes);
    let expected = play(&script, if loses { b"" } else { &reply });

    let (mut stream, after) = ask(&twins.faulted);
    let (seen, wanted) = (dateless(&after.bytes), &expected.seen);
    let place = seen.iter().zip(wanted).take_while(|(seen, wanted)| seen == wanted).count();
    assert!(
        seen == *wanted,
        "{} bytes instead of {}, equal up to {place}: {:.600}",
        seen.len(),
        wanted.len(),
        after.text()
    );
    for (due, count) in &expected.times {
        let came = after.times.iter().find(|(_, heard)| heard >= count).map_or(Duration::ZERO, |(at, _)| *at);
        assert!(
            *count == 0 || (came >= *due && came < *due + LATE),
            "byte {count}: at {came:?} instead of {due:?}"
        );
    }
    if ["drip", "drip_body", "bandwidth"].contains(&name) {
        // From the first piece of the drip itself: a head that goes at once is none.
        let pieces = &expected.times[usize::from(name == "drip_body")..];
        let at = |count: usize| after.times.iter().find(|(_, heard)| *heard >= count).unwrap().0;
        let (first, last) = (pieces.first().unwrap(), pieces.last().unwrap());
        let kept = (last.0 - first.0).as_secs_f64() / (at(last.1) - at(first.1)).as_secs_f64();
        assert!(pieces.len() > 20 && (kept - 1.0).abs() < 0.1, "{kept} of the rate");
    }
    let ends = after.ended >= expected.took && after.ended < expected.took + LATE;
    match expected.ended {
        Some(Step::Reset) => assert!(after.end == End::Reset && ends, "{:?} at {:?}", after.end, after.ended),
        Some(Step::Close) => {
            assert!(after.end == End::Fin && ends, "{:?} at {:?}", after.end, after.ended);
            assert!(!still_reads(&mut stream), "only half of the connection ended");
        }
        Some(Step::HalfClose) => {
            assert_eq!(after.end, End::Fin);
            assert!(still_reads(&mut stream), "the whole connection ended");
        }
        ended => {
            assert_eq!(after.end, End::Open);
            // A connection that is left to HTTP serves on; one that is silent never does.
            let body =
                samples::request(dealer_sim::protocol::Skill::DealerInformation, &serde_json::json!({}));
            let url = twins.faulted.url();
            let next = Asked { url: &url, body: Some(&body), fields: &[], keep: true };
            let heard = next.send_on(&mut stream, "/a2a");
            assert_eq!(heard.status(), if ended == Some(Step::Silence) { 0 } else { 200 });
        }
    }
    assert_eq!(has_lead(&twins.faulted, name), !loses, "whether the work was done");
}

/// The script of an effect, and whether it is played in place of the reply.
fn script_of(call: &str, draw: &mut Draw) -> (Script, bool) {
    let effect = parse_effects("test", call, registry()).unwrap().remove(0);
    match effect.info.apply {
        Apply::Deliver(script) => (script(&effect.args, draw), false),
        Apply::Lose(script) | Apply::Accept(script) => {
            let script = script(&effect.args, draw);
            let ends = script.ends();
            (script, ends)
        }
        _ => panic!("{call} is no delivery"),
    }
}

/// A reply with the value of its Date blanked: two dealers may answer in different seconds.
fn dateless(bytes: &[u8]) -> Vec<u8> {
    let mut out = bytes.to_vec();
    let name = b"\r\ndate: ";
    if let Some(at) = out.windows(name.len()).position(|window| window == name) {
        let rest = &mut out[at + name.len()..];
        let length = rest.iter().position(|byte| *byte == b'\r').unwrap_or(rest.len());
        rest[..length].fill(b'-');
    }
    out
}

/// Asserts what a client sees of an effect that a rule has at accept, before it has sent anything.
pub(crate) fn check_accepted(effect: &'static EffectInfo) {
    let name = effect.name;
    let arguments = ARGUMENTS.iter().find(|(known, _)| *known == name).map_or("", |(_, text)| text);
    let folder = tempfile::tempdir().unwrap();
    let plan = folder.path().join("plan.yaml");
    std::fs::write(&plan, format!("rules:\n  - {{ id: door, effect: \"{name}{arguments}\" }}\n")).unwrap();
    let sim = Sim::start(&["--faults", plan.to_str().unwrap()]);
    let url = sim.url();
    let (script, _) = script_of(&format!("{name}{arguments}"), &mut Draw::new(0, "", 0, 0));
    let begun = std::time::Instant::now();
    let (mut stream, path) = support::connect(&url);
    if script.ends() {
        let heard = super::talk::hear(&mut stream, begun);
        let expected = play(&script, b"");
        assert_eq!(heard.bytes, expected.seen);
        let end = match expected.ended {
            Some(Step::Reset) => End::Reset,
            Some(Step::Close) => End::Fin,
            _ => End::Open,
        };
        assert_eq!(heard.end, end);
        if end != End::Open {
            return;
        }
    }
    let body = samples::request(dealer_sim::protocol::Skill::DealerInformation, &serde_json::json!({}));
    let heard = Asked { url: &url, body: Some(&body), fields: &[], keep: true }.send_on(&mut stream, &path);
    assert_eq!(heard.status(), if script.ends() { 0 } else { 200 });
    if !script.ends() {
        let due = play(&script, b"").took;
        let came = begun.elapsed() - super::talk::QUIET;
        assert!(came >= due && came < due + LATE, "{came:?} instead of {due:?}");
    }
}

//! Attacks on the admin endpoint by those who can reach it.

use super::Attack;
use super::target::Target;

pub(crate) static ATTACKS: &[Attack] = &[
    Attack("admin: a plan of aliases upon aliases", |target| put(target, &alias_bomb()), "400"),
    Attack(
        "admin: a plan nested 10,000 deep",
        |target| put(target, &format!("rules: {}", "[".repeat(10_000))),
        "400",
    ),
    Attack("admin: a plan of 20,000 rules", |target| put(target, &many_rules()), "400"),
    Attack("admin: a plan of 1 MiB", |target| put(target, &"#".repeat(1 << 20)), "413"),
    Attack("admin: streams of the journal, 40 at once", streams, "503 after 16"),
    Attack("admin: 200 connections that say nothing", idle, "200"),
    Attack("admin: a rebound host name", rebound, "403"),
];

fn put(target: &Target, plan: &str) -> String {
    target.admin("PUT", "/faults", plan).0.to_string()
}

/// Nine lists of nine names each of the list before: 9^9 nodes if anybody copies them.
fn alias_bomb() -> String {
    let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..10 {
        let name = format!("*a{}, ", level - 1).repeat(9);
        text += &format!("a{level}: &a{level} [{}]\n", name.trim_end_matches(", "));
    }
    text + "rules: *a9\n"
}

fn many_rules() -> String {
    let rules: String = (0..20_000).map(|number| format!("- {{id: r{number}}}\n")).collect();
    assert!(rules.len() > 256 << 10 || rules.len() < 512 << 10);
    format!("rules:\n{}", &rules[..250_000])
}

fn streams(target: &Target) -> String {
    let mut open = Vec::new();
    for number in 0..40 {
        let mut caller = target.connect_admin();
        caller.say("GET /journal/stream HTTP/1.1\r\nHost: localhost\r\n\r\n");
        let mut first = [0; 12];
        std::io::Read::read_exact(&mut caller.0, &mut first).unwrap();
        if first.ends_with(b"503") {
            return format!("503 after {number}");
        }
        open.push(caller);
    }
    "200".to_owned()
}

fn idle(target: &Target) -> String {
    let idle: Vec<_> = (0..200).map(|_| target.connect_admin()).collect();
    let status = target.admin("GET", "/readyz", "").0.to_string();
    drop(idle);
    status
}

fn rebound(target: &Target) -> String {
    let mut caller = target.connect_admin();
    caller
        .say("POST /reset HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    caller.statuses()
}

//! Metrics in the OpenMetrics 1.0 text format.

use std::fmt::Write as _;
use std::sync::atomic::Ordering;

use crate::world::World;

/// Writes a family's head.
fn family(out: &mut String, name: &str, kind: &str, help: &str) {
    _ = writeln!(out, "# TYPE {name} {kind}\n# HELP {name} {help}");
}

/// Everything that is counted. Label values are ids and codes of ours, so none needs escaping.
pub(super) fn write(world: &World) -> String {
    let site = world.first();
    let scene = site.scene();
    let dealer = &scene.dealer;
    let mut out = String::new();

    family(&mut out, "dealer_sim_calls", "counter", "JSON-RPC calls answered, by skill and outcome.");
    for (skill, outcome, count) in dealer.counters().list() {
        _ = writeln!(out, "dealer_sim_calls_total{{skill=\"{skill}\",outcome=\"{outcome}\"}} {count}");
    }

    family(&mut out, "dealer_sim_faults", "counter", "Faults that happened, by rule.");
    for (rule, count) in site.faults.engine.fired() {
        _ = writeln!(out, "dealer_sim_faults_total{{rule=\"{rule}\"}} {count}");
    }

    let traffic = &world.traffic;
    let counters = [
        ("dealer_sim_http_requests", "HTTP requests answered.", &traffic.requests),
        ("dealer_sim_http_connections", "Connections accepted.", &traffic.connections),
        (
            "dealer_sim_http_connections_turned_away",
            "Connections closed for want of room.",
            &traffic.turned_away,
        ),
        ("dealer_sim_http_bodies_too_large", "Bodies refused for their size.", &traffic.too_large),
        ("dealer_sim_http_bodies_too_slow", "Bodies given up for their slowness.", &traffic.too_slow),
        ("dealer_sim_panics", "Handlers that failed unexpectedly.", &traffic.panics),
    ];
    for (name, help, counter) in counters {
        family(&mut out, name, "counter", help);
        _ = writeln!(out, "{name}_total {}", counter.load(Ordering::Relaxed));
    }
    let (received, dropped, keys_dropped, booked_dropped) = {
        let desk = dealer.desk();
        (desk.leads.received, desk.leads.dropped, desk.leads.forgotten, desk.diary.forgotten)
    };
    let journal = world.journal.totals();
    let limited = dealer.buckets().map_or(0, |buckets| buckets.forgotten);
    let totals = [
        ("dealer_sim_leads", "Leads received since the start or the last reset.", received),
        ("dealer_sim_leads_dropped", "Leads no longer kept in full.", dropped),
        (
            "dealer_sim_idempotency_keys_dropped",
            "Idempotency keys forgotten before their time.",
            keys_dropped,
        ),
        ("dealer_sim_bookings_dropped", "Bookings forgotten to keep the diary bounded.", booked_dropped),
        ("dealer_sim_conversations_dropped", "Conversations forgotten.", dealer.conversations().dropped()),
        ("dealer_sim_buckets_dropped", "Rate-limit buckets forgotten.", limited),
        (
            "dealer_sim_journal_recorded",
            "Entries of the journal since it was last cleared.",
            journal.recorded,
        ),
        ("dealer_sim_journal_dropped", "Those that no longer fit.", journal.dropped),
        ("dealer_sim_keys_dropped", "Stable keys forgotten.", dealer.attempts().forgotten()),
    ];
    for (name, help, count) in totals {
        family(&mut out, name, "counter", help);
        _ = writeln!(out, "{name}_total {count}");
    }
    let gauges = [
        ("dealer_sim_http_connections_open", "Connections open now.", traffic.open.load(Ordering::Relaxed)),
        (
            "dealer_sim_http_requests_in_flight",
            "Requests being answered now.",
            traffic.in_flight.load(Ordering::Relaxed),
        ),
        ("dealer_sim_journal_entries", "Entries that can be read.", journal.kept),
        ("dealer_sim_journal_bytes", "Bytes of texts and bodies in the journal.", journal.bytes),
        ("dealer_sim_conversations", "Conversations remembered.", dealer.conversations().count() as u64),
        ("dealer_sim_vehicles", "Vehicles known.", u64::from(dealer.inventory().len())),
        ("dealer_sim_seed", "The seed in force.", dealer.spec().seed),
    ];
    for (name, help, value) in gauges {
        family(&mut out, name, "gauge", help);
        _ = writeln!(out, "{name} {value}");
    }
    out.push_str("# EOF\n");
    out
}

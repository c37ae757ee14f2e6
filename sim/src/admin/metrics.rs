//! Metrics in the OpenMetrics 1.0 text format: of one dealer, or the sums of all and what is the listener's. Several dealers
//! do not make more series: those of each are at its own `/d/<dealer_id>/metrics`.

use std::fmt::Write as _;
use std::sync::atomic::Ordering;

use super::Scope;
use super::faults::fired;
use crate::dealer::Dealer;
use crate::journal::Totals;
use crate::ledger::Counts;
use crate::world::{Site, Traffic};

/// Writes a family's head.
fn family(out: &mut String, name: &str, kind: &str, help: &str) {
    _ = writeln!(out, "# TYPE {name} {kind}\n# HELP {name} {help}");
}

/// Writes a family of one value.
fn single(out: &mut String, (name, kind, help): (&str, &str, &str), value: u64) {
    family(out, name, kind, help);
    let suffix = if kind == "counter" { "_total" } else { "" };
    _ = writeln!(out, "{name}{suffix} {value}");
}

/// What is counted of a dealer, in the order of [`dealer_values`].
const OF_DEALER: [(&str, &str, &str); 11] = [
    ("dealer_sim_leads", "counter", "Leads received since the start or the last reset."),
    ("dealer_sim_leads_dropped", "counter", "Leads no longer kept in full."),
    ("dealer_sim_idempotency_keys_dropped", "counter", "Idempotency keys forgotten before their time."),
    ("dealer_sim_bookings_dropped", "counter", "Bookings forgotten to keep the diary bounded."),
    ("dealer_sim_conversations_dropped", "counter", "Conversations forgotten."),
    ("dealer_sim_buckets_dropped", "counter", "Token buckets forgotten before they were full."),
    ("dealer_sim_keys_dropped", "counter", "Stable keys forgotten."),
    ("dealer_sim_vehicle_edits", "counter", "Vehicles changed, added or removed by the admin endpoint."),
    ("dealer_sim_vehicle_edits_refused", "counter", "Edits refused, since no more are remembered."),
    ("dealer_sim_conversations", "gauge", "Conversations remembered."),
    ("dealer_sim_vehicles", "gauge", "Vehicles known."),
];

fn dealer_values(dealer: &Dealer) -> [u64; OF_DEALER.len()] {
    let (received, dropped, keys_dropped, booked_dropped) = {
        let desk = dealer.desk();
        (desk.leads.received, desk.leads.dropped, desk.leads.forgotten, desk.diary.forgotten)
    };
    let [edited, edits_refused] = dealer.lot().counts();
    [
        received,
        dropped,
        keys_dropped,
        booked_dropped,
        dealer.conversations().dropped(),
        dealer.buckets_forgotten(),
        dealer.attempts().forgotten(),
        edited,
        edits_refused,
        dealer.conversations().count() as u64,
        u64::from(dealer.inventory().len()),
    ]
}

/// Everything that is counted. Label values are ids and codes of ours, so none needs escaping.
pub(super) fn write(scope: &Scope<'_>) -> String {
    let mut out = String::new();
    family(&mut out, "dealer_sim_calls", "counter", "JSON-RPC calls answered, by skill and outcome.");
    for ((skill, outcome), count) in calls(scope.sites) {
        _ = writeln!(out, "dealer_sim_calls_total{{skill=\"{skill}\",outcome=\"{outcome}\"}} {count}");
    }
    family(&mut out, "dealer_sim_faults", "counter", "Faults that happened, by rule.");
    for (rule, count) in fired(scope.sites) {
        _ = writeln!(out, "dealer_sim_faults_total{{rule=\"{rule}\"}} {count}");
    }
    if scope.is_all {
        write_traffic(&mut out, &scope.world.traffic);
        write_journal(&mut out, scope.world.journal.totals());
        if let Some(ledger) = &scope.world.ledger {
            write_ledger(&mut out, &ledger.counts);
        }
        let dealers = ("dealer_sim_dealers", "gauge", "Dealers served.");
        single(&mut out, dealers, scope.sites.len() as u64);
    }
    let mut sums = [0; OF_DEALER.len()];
    for site in scope.sites {
        for (sum, value) in sums.iter_mut().zip(dealer_values(&site.scene().dealer)) {
            *sum += value;
        }
    }
    for (of_dealer, sum) in OF_DEALER.into_iter().zip(sums) {
        single(&mut out, of_dealer, sum);
    }
    let seed = scope.first().scene().dealer.spec().seed;
    single(&mut out, ("dealer_sim_seed", "gauge", "The seed in force, of the first dealer."), seed);
    out.push_str("# EOF\n");
    out
}

/// Calls by skill and outcome, of all dealers together.
fn calls(sites: &[Site]) -> Vec<((&'static str, String), u64)> {
    let mut sums: Vec<((&'static str, String), u64)> = Vec::new();
    for site in sites {
        for (skill, outcome, count) in site.scene().dealer.counters().list() {
            let name = (skill, outcome);
            match sums.iter_mut().find(|(known, _)| *known == name) {
                Some((_, sum)) => *sum += count,
                None => sums.push((name, count)),
            }
        }
    }
    sums
}

fn write_journal(out: &mut String, totals: Totals) {
    let families = [
        (
            "dealer_sim_journal_recorded",
            "counter",
            "Entries of the journal since it was last cleared.",
            totals.recorded,
        ),
        ("dealer_sim_journal_dropped", "counter", "Those that no longer fit.", totals.dropped),
        ("dealer_sim_journal_entries", "gauge", "Entries that can be read.", totals.kept),
        ("dealer_sim_journal_bytes", "gauge", "Bytes of texts and bodies in the journal.", totals.bytes),
    ];
    for (name, kind, help, value) in families {
        single(out, (name, kind, help), value);
    }
}

/// What became of the leads that are written down.
fn write_ledger(out: &mut String, counts: &Counts) {
    let families = [
        (
            "dealer_sim_leads_recovered",
            "gauge",
            "Leads known from the leads file at the start.",
            &counts.recovered,
        ),
        (
            "dealer_sim_leads_passed_over",
            "gauge",
            "Records of the leads file whose dealers are not served.",
            &counts.passed_over,
        ),
        (
            "dealer_sim_leads_torn_bytes",
            "gauge",
            "Bytes of a torn record cut off at the start.",
            &counts.torn_bytes,
        ),
        ("dealer_sim_leads_written", "counter", "Records written to the leads file.", &counts.written),
        ("dealer_sim_leads_syncs", "counter", "Times that the leads file was synced.", &counts.synced),
        (
            "dealer_sim_leads_write_failures",
            "counter",
            "Attempts to write or sync the leads file that failed.",
            &counts.failed,
        ),
    ];
    for (name, kind, help, value) in families {
        single(out, (name, kind, help), value.load(Ordering::Relaxed));
    }
}

/// What is the listener's, whichever dealer is asked.
fn write_traffic(out: &mut String, traffic: &Traffic) {
    let counters = [
        ("dealer_sim_http_requests", "HTTP requests answered.", &traffic.requests),
        ("dealer_sim_http_connections", "Connections accepted.", &traffic.connections),
        (
            "dealer_sim_http_connections_turned_away",
            "Connections closed for want of room.",
            &traffic.turned_away,
        ),
        (
            "dealer_sim_http_connections_turned_away_client",
            "Connections closed since too many of their client were open.",
            &traffic.turned_away_client,
        ),
        (
            "dealer_sim_http_replies_refused",
            "Large replies refused since too many waited for their readers.",
            &traffic.replies_refused,
        ),
        ("dealer_sim_http_unauthorized", "Requests refused for want of credentials.", &traffic.unauthorized),
        ("dealer_sim_admin_refused", "Requests to the admin endpoint refused.", &traffic.admin_refused),
        ("dealer_sim_tls_failures", "TLS handshakes that failed or took too long.", &traffic.tls_failures),
        ("dealer_sim_http2_floods", "HTTP/2 connections ended for flooding.", &traffic.http2_floods),
        (
            "dealer_sim_http2_stalled",
            "HTTP/2 connections ended since nobody took the replies.",
            &traffic.http2_stalled,
        ),
        ("dealer_sim_http_bodies_too_large", "Bodies refused for their size.", &traffic.too_large),
        ("dealer_sim_http_bodies_too_slow", "Bodies given up for their slowness.", &traffic.too_slow),
        ("dealer_sim_panics", "Handlers that failed unexpectedly.", &traffic.panics),
    ];
    for (name, help, counter) in counters {
        single(out, (name, "counter", help), counter.load(Ordering::Relaxed));
    }
    let gauges = [
        ("dealer_sim_http_connections_open", "Connections open now.", &traffic.open),
        (
            "dealer_sim_http_reply_bytes_waiting",
            "Bytes of large replies that are not delivered yet.",
            &traffic.reply_bytes_waiting,
        ),
        ("dealer_sim_http_requests_in_flight", "Requests being answered now.", &traffic.in_flight),
    ];
    for (name, help, gauge) in gauges {
        single(out, (name, "gauge", help), gauge.load(Ordering::Relaxed));
    }
}

//! The mutation test of the suite: the simulator's catalogue of faults played against the table of rules. What an effect
//! does is known, so it is known which rule has to see it: each breach breaks the rules named for it, and nothing that a
//! dealer may do breaks any.

mod breaches;
mod lawful;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use dealer_loadgen::conform::{Certainty, ConformError, Finding, Report, Verdict, conform, rules, text};
use dealer_sim::Dealer;
use dealer_sim::faults::{Slot, registry};
use dealer_sim::journal::Limits;
use dealer_sim::protocol::{Binding, Contract};

use super::{failed, on_runtime, request};

/// Suites that run at once: many of them wait for replies that never come.
const AT_ONCE: usize = 6;
/// The whole of it takes no longer.
const BUDGET: Duration = Duration::from_secs(60);

/// One way of playing an effect, and what the suite has to make of it.
struct Row {
    /// The effect, with arguments where the usual ones would take long.
    effect: &'static str,
    when: &'static str,
    expect: Expect,
}

enum Expect {
    /// All of these rules are broken.
    Breaks(&'static [&'static str]),
    /// No must is broken, and of the shoulds these alone; the dealer conforms.
    Keeps(&'static [&'static str]),
    /// There was nothing to judge, in these words; nothing is called broken.
    Unjudged(&'static str),
}

/// At every request, discovery among them where the effect touches that.
const ALWAYS: &str = "";
/// The skills: what has none of them, such as a request without a method, is left alone.
macro_rules! skills {
    () => {
        "skill: [dealer.information, inventory.facets, inventory.search, inventory.vehicle, lead.submit]"
    };
}
/// At every call of a skill.
const CALLS: &str = concat!(", when: { ", skills!(), " }");
/// At every seventh call, third or second: what comes and goes.
const OFTEN: &str = concat!(", when: { nth: 7, ", skills!(), " }");
const EVERY_THIRD: &str = concat!(", when: { nth: 3, ", skills!(), " }");
const EVERY_SECOND: &str = concat!(", when: { nth: 2, ", skills!(), " }");
/// Every seventh through A2A alone, for what an A2A reply may carry beside its payload; the payload is the whole reply elsewhere.
const OFTEN_BY_A2A: &str = concat!(", when: { nth: 7, binding: a2a, ", skills!(), " }");
/// At a few calls: what costs a time-out each.
const RARELY: &str = concat!(", when: { nth: 60, ", skills!(), " }");

const fn breaks(effect: &'static str, when: &'static str, rules: &'static [&'static str]) -> Row {
    Row { effect, when, expect: Expect::Breaks(rules) }
}

const fn keeps(effect: &'static str, when: &'static str) -> Row {
    Row { effect, when, expect: Expect::Keeps(&[]) }
}

/// Lawful, and not what is recommended.
const fn remarks(effect: &'static str, when: &'static str, shoulds: &'static [&'static str]) -> Row {
    Row { effect, when, expect: Expect::Keeps(shoulds) }
}

/// Lawful, and such that nothing can be said of the dealer.
const fn unjudged(effect: &'static str, when: &'static str, words: &'static str) -> Row {
    Row { effect, when, expect: Expect::Unjudged(words) }
}

impl Row {
    fn name(&self) -> &'static str {
        self.effect.split('(').next().unwrap_or_default()
    }

    fn plan(&self) -> String {
        format!("rules: [{{ id: x, effect: '{}'{} }}]", self.effect, self.when)
    }

    /// Plays it.
    fn play(&self, contract: Contract) -> Played {
        let plan = self.plan().parse().unwrap();
        on_runtime(async {
            let dealer = Dealer::builder().seed(3).vehicles(120).contract(contract).threads(1).faults(plan);
            let dealer = dealer.journal(Limits::OFF).start().await.unwrap();
            let mut request = request(Some(dealer.card_url()));
            request.allow_draft_contract = true;
            request.options.timeout = Duration::from_secs(1);
            let report = conform(&request).await;
            let fired = dealer.world().first().faults.engine.fired().iter().map(|(_, count)| count).sum();
            Played { report, fired }
        })
    }
}

struct Played {
    report: Result<Report, ConformError>,
    /// How often the effect was applied.
    fired: u64,
}

impl Played {
    /// What is wrong with what the suite made of it, if anything.
    fn fault(&self, expect: &Expect, contract: Contract) -> Option<String> {
        if self.fired == 0 {
            return Some("the effect was never applied".to_owned());
        }
        let told = || self.report.as_ref().map_or_else(ToString::to_string, text);
        let [musts, shoulds] = [Certainty::Must, Certainty::Should].map(|certainty| self.broken(certainty));
        match (expect, &self.report) {
            (Expect::Breaks(wanted), Ok(_)) => {
                let applies = |id: &&&str| rules().any(|rule| rule.id == **id && rule.applies.to(contract));
                let wanted: Vec<_> = wanted.iter().filter(applies).collect();
                if wanted.is_empty() {
                    return Some(format!("no rule of {contract} is named"));
                }
                let missed: Vec<_> =
                    wanted.iter().filter(|id| !musts.contains(id) && !shoulds.contains(id)).collect();
                (!missed.is_empty())
                    .then(|| format!("{missed:?} not seen to be broken, but {musts:?} {shoulds:?}"))
            }
            (Expect::Keeps(wanted), Ok(report)) => {
                let [kept, _, not_run] = report.counts(Certainty::Must);
                if !musts.is_empty() || shoulds != *wanted || report.verdict != Verdict::Conforms {
                    Some(format!("musts {musts:?}, shoulds {shoulds:?} broken\n{}", told()))
                } else {
                    (kept < 2 * not_run).then(|| format!("only {kept} musts were judged\n{}", told()))
                }
            }
            (Expect::Unjudged(words), _) => {
                let is_judged = matches!(&self.report, Ok(report) if report.exit_code() != 2);
                (is_judged || !musts.is_empty() || !told().contains(words)).then(told)
            }
            (_, Err(_)) => Some(told()),
        }
    }

    fn broken(&self, certainty: Certainty) -> Vec<&'static str> {
        self.report.as_ref().map(|report| failed(report, certainty)).unwrap_or_default()
    }

    /// What came of it, in a line of the table.
    fn line(&self) -> String {
        match &self.report {
            Err(error) => error.to_string(),
            Ok(report) => {
                let [musts, shoulds] =
                    [Certainty::Must, Certainty::Should].map(|certainty| self.broken(certainty));
                let not_run =
                    report.results.iter().filter(|j| matches!(j.finding, Finding::NotRun(_))).count();
                let shown: Vec<_> = musts.iter().chain(&shoulds).take(4).copied().collect();
                let more = (musts.len() + shoulds.len()).saturating_sub(4);
                let more = if more == 0 { String::new() } else { format!(" and {more} more") };
                format!("{}, {not_run} not run; {}{more}", report.verdict.word(), shown.join(", "))
            }
        }
    }
}

fn rows() -> impl Iterator<Item = &'static Row> {
    breaches::ROWS.iter().chain(lawful::ROWS)
}

/// Plays these rows, several at once; gives what came of each, in their order.
fn play_all(rows: &[&'static Row], contract: Contract) -> Vec<Played> {
    let next = Mutex::new(0..rows.len());
    let done = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let Some(number) = next.lock().unwrap().next() else { return };
                    let played = rows[number].play(contract);
                    done.lock().unwrap().insert(number, played);
                }
            });
        }
    });
    done.into_inner().unwrap().into_values().collect()
}

#[test]
fn every_effect_of_the_catalogue_has_a_row_of_its_kind() {
    let known: BTreeSet<_> = rules().map(|rule| rule.id).collect();
    // The suite asks by A2A; what touches that has to be seen.
    for effect in registry().iter().filter(|effect| effect.bindings.has(Binding::A2a)) {
        let rows: Vec<_> = rows().filter(|row| row.name() == effect.name).collect();
        assert!(!rows.is_empty(), "{}: say in tests/mutation what the suite has to make of it", effect.name);
        for row in rows {
            let is_breach = matches!(row.expect, Expect::Breaks(_));
            assert_eq!(!effect.lawfulness.is_lawful(Contract::V3_0), is_breach, "{}", effect.name);
            if let Expect::Breaks(ids) | Expect::Keeps(ids) = row.expect {
                let unknown: Vec<_> = ids.iter().filter(|id| !known.contains(*id)).collect();
                assert!(unknown.is_empty(), "{}: there are no rules {unknown:?}", effect.name);
                assert!(!is_breach || !ids.is_empty(), "{}: name the rule that sees it", effect.name);
            }
        }
    }
    for row in rows() {
        assert!(registry().iter().any(|effect| effect.name == row.name()), "{} is no effect", row.name());
    }
}

/// The same under a contract in the field, for what changes answers and cards; HTTP and below know no contract. Rules have
/// other names there, so it is asked whether some must is broken: by each breach of that contract, and by nothing else.
#[test]
fn under_a_released_contract_each_breach_breaks_a_must_and_nothing_lawful_does() {
    let contract = Contract::V1_2;
    let started = Instant::now();
    let of = |row: &Row| registry().iter().find(|effect| effect.name == row.name()).unwrap();
    let rows: Vec<_> = rows()
        .filter(|row| !matches!(row.expect, Expect::Unjudged(_)) && of(row).apply.slot() == Slot::Answer)
        .collect();
    let mut wrong = String::new();
    for (row, played) in rows.iter().zip(play_all(&rows, contract)) {
        let is_lawful = of(row).lawfulness.is_lawful(contract);
        let musts = played.broken(Certainty::Must);
        // Some breaches are of rules that only recommend.
        let only_recommended = matches!(row.expect, Expect::Breaks(ids) if shoulds(ids));
        if is_lawful != musts.is_empty() && !only_recommended {
            let _ = writeln!(
                wrong,
                "{}: lawful {is_lawful}, musts broken {musts:?}; {}",
                row.plan(),
                played.line()
            );
        }
    }
    println!("{} rows under contract {contract} in {:?}", rows.len(), started.elapsed());
    assert!(wrong.is_empty(), "{wrong}");
    assert!(started.elapsed() < BUDGET, "{:?}", started.elapsed());
}

/// Whether all these rules only recommend.
fn shoulds(ids: &[&str]) -> bool {
    ids.iter().all(|id| rules().any(|rule| rule.id == *id && rule.certainty != Certainty::Must))
}

#[test]
fn each_breach_breaks_the_right_rule_and_nothing_lawful_breaks_any() {
    hold(&rows().collect::<Vec<_>>(), Contract::V3_0);
}

/// Of what contracts differ in.
#[test]
fn cards_and_conversations_are_judged_right_under_contract_2_0_too() {
    let differs = |row: &&Row| {
        let of = registry().iter().find(|effect| effect.name == row.name()).map(|effect| effect.family);
        matches!(of, Some("discovery" | "conversation"))
    };
    hold(&rows().filter(differs).collect::<Vec<_>>(), Contract::V2_0);
}

fn hold(rows: &[&'static Row], contract: Contract) {
    let started = Instant::now();
    let all = play_all(rows, contract);
    let (mut table, mut wrong) = (String::new(), String::new());
    // Breaches, and what is lawful: how many are judged right, how many there are.
    let mut counts = [[0; 2]; 2];
    for (row, played) in rows.iter().zip(&all) {
        let is_breach = matches!(row.expect, Expect::Breaks(_));
        let fault = played.fault(&row.expect, contract);
        let count = &mut counts[usize::from(!is_breach)];
        count[1] += 1;
        count[0] += usize::from(fault.is_none());
        let kind = if is_breach { "breach" } else { "lawful" };
        // Writing to a String cannot fail.
        let _ = writeln!(table, "{kind} {:40} {:4} times: {}", row.effect, played.fired, played.line());
        if let Some(fault) = fault {
            let _ = writeln!(wrong, "{}: {fault}", row.plan());
        }
    }
    let [[killed, breaches], [passed, lawful]] = counts;
    println!(
        "{table}AAP {contract}, {} effects: {killed} of {breaches} breaches broke the right rule, {passed} of {lawful} lawful ways broke none; {:?}",
        rows.iter().map(|row| row.name()).collect::<BTreeSet<_>>().len(),
        started.elapsed()
    );
    assert!(wrong.is_empty(), "{wrong}");
    assert!(started.elapsed() < BUDGET, "{:?}", started.elapsed());
}

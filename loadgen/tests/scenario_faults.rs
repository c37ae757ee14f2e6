//! Broken scenarios: every fault of a file is told at once, at its line and column, and says what would be right.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::fs;
use std::path::{Path, PathBuf};

use dealer_loadgen::scenario::{LoadError, load};
use proptest::prelude::*;

fn broken() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/broken")
}

fn load_text(text: &[u8]) -> Result<(), LoadError> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.yaml");
    fs::write(&path, text).unwrap();
    load(&[path], &[]).map(|_| ())
}

/// `line:column` of every fault, in order.
fn places(text: &str) -> Vec<String> {
    let error = load_text(text.as_bytes()).unwrap_err();
    let place = |fault: &dealer_loadgen::scenario::Fault| {
        format!("{}:{}", fault.line().unwrap_or_default(), fault.column().unwrap_or_default())
    };
    error.faults().iter().map(place).collect()
}

/// Each file of `tests/broken` against the text beside it. UPDATE_GOLDEN=1 writes the texts anew; read them before
/// they are committed.
#[test]
fn every_broken_scenario_is_explained() {
    let mut files: Vec<PathBuf> =
        fs::read_dir(broken()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    assert!(files.len() >= 12);
    for path in files {
        let error = load(std::slice::from_ref(&path), &[]).expect_err(&path.display().to_string());
        assert!(!error.unreadable());
        let folder = format!("{}{}", broken().display(), std::path::MAIN_SEPARATOR);
        let told = format!("{error}\n").replace(&folder, "");
        let golden = path.with_extension("txt");
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            fs::write(&golden, &told).unwrap();
        }
        let wanted = fs::read_to_string(&golden).unwrap().replace("\r\n", "\n");
        assert_eq!(told, wanted, "{}", path.display());
    }
}

#[test]
fn places_are_those_of_the_word_that_is_wrong() {
    let step = "name: t\nflows:\n  f:\n    - step: s\n      skill: inventory.search\n";
    for (rest, wanted) in [
        ("      request: { a: \"${x}\" }\n", "6:24"),
        ("      request: { a: 'äö ${x}' }\n", "6:27"),
        ("      request:\n        a: ${uniform(1, x)}\n", "7:25"),
        // An escape moves the text against the file: the scalar as a whole is pointed at.
        ("      request: { a: \"\\t${x}\" }\n", "6:21"),
        ("      request:\n        a: |\n          text\n          ${x}\n", "8:11"),
        ("      unknown: 1\n", "6:7"),
        ("      expect: [ ok, nok ]\n", "6:21"),
        ("      when: [ \"${x}\" ]\n", "6:18"),
    ] {
        let error = load_text(format!("{step}{rest}").as_bytes()).unwrap_err();
        let found = &error.faults()[0];
        let at = format!("{}:{}", found.line().unwrap(), found.column().unwrap());
        assert_eq!(at, wanted, "{rest}{error}");
    }
}

#[test]
fn aliases_are_followed_and_their_bombs_are_not() {
    let step = "skill: inventory.search, request: { filters: ";
    let aliased = format!(
        "name: t\nflows:\n  f:\n    - {{ step: a, {step}&f {{ make: [Ford] }} }} }}\n    - {{ step: b, {step}*f }} }}\n"
    );
    load_text(aliased.as_bytes()).unwrap();
    let mut bomb = "name: t\nvariables:\n  v0: &v0 [1,1,1,1,1,1,1,1,1,1]\n".to_owned();
    for n in 1..12 {
        let m = n - 1;
        bomb.push_str(&format!(
            "  v{n}: &v{n} [*v{m},*v{m},*v{m},*v{m},*v{m},*v{m},*v{m},*v{m},*v{m},*v{m}]\n"
        ));
    }
    assert!(load_text(bomb.as_bytes()).unwrap_err().to_string().contains("more than 100000 values"));
    let copies = vec!["*v"; 50_000].join(",");
    let long = format!("name: t\nvariables:\n  v: &v \"{}\"\n  w: [{copies}]\n", "z".repeat(800_000));
    let error = load_text(long.as_bytes()).unwrap_err();
    assert!(error.to_string().contains("more than 16777216 bytes of text"), "{error}");
    assert_eq!(error.faults()[0].line(), Some(4));
    assert!(load_text(b"name: &a [*a]\n").is_err());
}

#[test]
fn what_is_too_large_is_refused_quickly() {
    let deep = format!("name: {}", "[".repeat(200));
    assert!(load_text(deep.as_bytes()).is_err());
    let nested: String = (0..100).map(|n| format!("{}a:\n", " ".repeat(n))).collect();
    assert!(load_text(nested.as_bytes()).unwrap_err().to_string().contains("deeper than 64"));
    assert!(load_text(&vec![b' '; (1 << 20) + 1]).unwrap_err().to_string().contains("larger than"));
    let mut doubling = "name: t\nflows:\n  f0: [ { think: 1s } ]\n".to_owned();
    for n in 1..64 {
        doubling.push_str(&format!("  f{n}: [ {{ include: f{m} }}, {{ include: f{m} }} ]\n", m = n - 1));
    }
    assert!(load_text(doubling.as_bytes()).unwrap_err().to_string().contains("more than 1000 items"));
    let wide = format!(
        "name: t\nvariables: {{ {} }}\n",
        (0..2000).map(|n| format!("v{n}: 1, ")).collect::<String>()
    );
    assert!(load_text(wide.as_bytes()).unwrap_err().to_string().contains("more than 1000 variables"));
    let many: String = (0..500).map(|n| format!("unknown{n}: 1\n")).collect();
    let error = load_text(many.as_bytes()).unwrap_err();
    assert_eq!(error.faults().len(), 100);
    assert!(error.to_string().contains("more"), "{error}");
}

/// Work grows with the size of a file, not with its square: the largest files of one kind of fault each.
#[test]
#[expect(clippy::disallowed_methods, reason = "a test of how long something takes reads a clock")]
fn the_largest_files_are_refused_in_time() {
    let lines = |line: &dyn Fn(usize) -> String| -> String { (0..45_000).map(line).collect() };
    let flows = "name: t\nflows:\n  f:\n    - step: s\n      skill: inventory.search\n";
    for text in [
        lines(&|n| format!("k{n}: 1\n")),
        format!("{flows}{}", lines(&|n| format!("    - {n}\n"))),
        format!("{flows}      request:\n{}", lines(&|n| format!("        k{n}: ${{x{n}}}\n"))),
        format!("{flows}      extract:\n{}", lines(&|n| format!("        k{n}: /{n}\n"))),
        format!("name: t\nflows:\n{}", lines(&|n| format!("  k{n}: []\n"))),
        format!("{flows}    - \"{}\"\n", "${".repeat(400_000)),
        format!("[{}", "[".repeat(900_000)),
        format!("a: {}", "&a *a ".repeat(100_000)),
    ] {
        let begin = std::time::Instant::now();
        assert!(load_text(text.as_bytes()).is_err());
        // Some tenths of a second without optimisation; the square would take minutes.
        assert!(begin.elapsed().as_secs() < 20, "{}: {:?}", &text[..40], begin.elapsed());
    }
}

#[test]
fn a_file_that_cannot_be_read_is_no_fault_of_the_scenario() {
    let error = load(&[broken().join("none.yaml")], &[]).unwrap_err();
    assert!(
        error.unreadable() && error.to_string().contains("none.yaml: the scenario cannot be read: "),
        "{error}"
    );
    assert!(load(&[broken()], &[]).unwrap_err().to_string().contains("directory"));
    assert!(load(&[], &[]).is_err());
    let error = load_text(b"name: t\nflows: \xff\n").unwrap_err();
    assert!(error.to_string().contains(":2:8: this byte is not UTF-8"), "{error}");
}

#[test]
fn a_set_that_nothing_uses_is_refused() {
    let smoke = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios/shopping.yaml");
    let set = |name: &str, value: &str| {
        load(std::slice::from_ref(&smoke), &[(name.to_owned(), value.to_owned())])
            .map(|_| ())
            .map_err(|e| e.to_string())
    };
    assert_eq!(set("budget", "20000"), Ok(()));
    let error = set("budgte", "20000").unwrap_err();
    assert!(
        error.contains("no scenario uses the name `budgte`") && error.contains("did you mean `budget`?"),
        "{error}"
    );
    assert!(set("a b", "1").unwrap_err().contains("is no name"));
    assert!(set("budget", "123456789012345678901234567890").unwrap_err().contains("64 bits"));
}

#[test]
fn two_files_share_one_list_of_faults() {
    let paths = [broken().join("05-think.yaml"), broken().join("08-time.yaml")];
    let told = load(&paths, &[]).unwrap_err().to_string();
    assert!(told.contains("05-think.yaml:6:14:") && told.contains("08-time.yaml:2:21:"), "{told}");
}

#[test]
fn faults_come_in_the_order_of_the_file() {
    let text = "name: t\nb: 1\na: 1\nflows: { f: [ { step: s, skill: x }, { step: s, skill: y } ] }\n";
    assert_eq!(places(text), ["2:1", "3:1", "4:33", "4:46", "4:56"]);
}

proptest! {
    /// Any bytes: an answer, never a panic.
    #[test]
    fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = load_text(&bytes);
    }

    /// Text made of the words that scenarios are made of gets further than random bytes do.
    #[test]
    fn no_text_panics(words in proptest::collection::vec(prop_oneof![
        Just("name: t\n"), Just("flows:\n"), Just("  f:\n"), Just("    - step: s\n"), Just("      skill: inventory.search\n"),
        Just("      request: { a: \"${"), Just("uniform("), Just("1, 2)"), Just("}\" }\n"), Just("    - think: "), Just("1s\n"),
        Just("    - include: f\n"), Just("variables: { a: "), Just(" }\n"), Just("&a "), Just("*a"), Just("["), Just("]"), Just("{"),
        Just("}"), Just(": "), Just("'"), Just("\""), Just("ä"), Just("\t"), Just("|\n"), Just("$${"), Just("now(-"), Just("x.y[0]"),
        Just("      extract: { v: /a }\n"), Just("      check: [ { path: /a, gte: 1 } ]\n"), Just("#"), Just("---\n"), Just("? "),
    ], 0..40)) {
        let _ = load_text(words.concat().as_bytes());
    }

    /// Any text inside `${…}`.
    #[test]
    fn no_expression_panics(inside in "[a-z0-9(),.='\\[\\] +-]{0,24}", think in "[a-z0-9(),.= +-]{0,24}") {
        let text = format!("name: t\nflows:\n  f:\n    - step: s\n      skill: lead.submit\n      request: {{ a: \"${{{inside}}}\" }}\n    - think: \"{think}\"\n");
        let _ = load_text(text.as_bytes());
    }
}

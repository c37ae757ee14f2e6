//! What the README shows of the library is what the crate's own documentation compiles and runs.

#![allow(clippy::unwrap_used)]

/// The blocks of Rust in a Markdown text.
fn blocks(markdown: &str) -> Vec<&str> {
    let starts = markdown.split("```rust\n").skip(1);
    starts.map(|block| block.split("```").next().unwrap()).collect()
}

#[test]
fn the_fault_in_the_readme_is_the_one_that_is_compiled() {
    let readme = include_str!("../../README.md");
    let documented: String = include_str!("../src/lib.rs")
        .lines()
        .filter_map(|line| line.strip_prefix("//! "))
        .filter(|line| !line.starts_with("# "))
        .map(|line| format!("{line}\n"))
        .collect();
    let shown = blocks(readme).into_iter().find(|block| block.contains("effect:")).unwrap();
    assert!(shown.lines().count() <= 10, "it is short");
    assert!(documented.contains(shown), "README.md and sim/src/lib.rs differ:\n{shown}");
}

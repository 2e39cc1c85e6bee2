//! Ports of the library's protocols, each explored under C11's memory model by loom
//! (<https://docs.rs/loom>): every interleaving, every value that a load may return, and every
//! access to an object's memory that nothing orders.
//!
//! `protocols` runs all checks and all mutants, each in a process of its own. `protocols CHECK
//! [MUTANT]` runs one: status 0 without an error, 101 with one.

mod handle;
mod line;
mod looks;
mod region;
mod segment;
mod snapshot;
mod straight;
mod token;

use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::OnceLock;

static MUTANT: OnceLock<String> = OnceLock::new();
static EXECUTIONS: AtomicU64 = AtomicU64::new(0);

/// True if this process runs the mutant of that name.
fn mutant(name: &str) -> bool {
    MUTANT.get().is_some_and(|mutant| mutant == name)
}

/// The order, or `Relaxed` in the mutant of that name.
fn unless(name: &str, order: loom::sync::atomic::Ordering) -> loom::sync::atomic::Ordering {
    if mutant(name) {
        loom::sync::atomic::Ordering::Relaxed
    } else {
        order
    }
}

/// Explores all executions of `body`. `preemptions`: how often a thread that could go on is
/// interrupted in one of them; `None`: without a bound.
fn explore(preemptions: Option<usize>, body: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions;
    builder.max_branches = 100_000;
    builder.check(move || {
        EXECUTIONS.fetch_add(1, Ordering::Relaxed);
        body();
    });
}

type Check = (&'static str, fn(), &'static [&'static str]);

const CHECKS: &[Check] = &[
    ("line-reuse", line::reuse, &["FREE_RELAXED", "TAKE_NO_ACQUIRE"]),
    ("line-double", line::double, &["TAKE_RELAXED", "MERGE_CLEARS_FIRST", "CHECK_BACKWARDS", "FREED_CLEARED_FIRST"]),
    ("line-release", line::release, &["FREE_ANY_INCARNATION", "RELEASE_BY_STORE"]),
    ("snapshot", snapshot::check, &["ISSUED_FIRST", "ISSUED_RELAXED", "ISSUED_READ_LAST"]),
    ("region-reuse", region::reuse, &["FREER_RELAXED", "OWNER_RELAXED"]),
    ("region-lives", region::lives, &["LATE_IGNORED", "LEAVE_ANY_LIFE", "LATE_RELAXED"]),
    ("handle", handle::check, &["MOVE_BY_STORE", "NEW_COUNT_MISSING"]),
    ("token", token::check, &["ARM_NO_RECOUNT", "FREER_LOOKS_FIRST", "LOOK_RELAXED"]),
    ("straight", straight::check, &["COUNT_SET_LATE", "OPENED_RELAXED", "STRIPE_RELAXED", "UNCOUNTED"]),
    ("view", looks::view, &["REF_RELAXED", "REF_READ_RELAXED"]),
    ("renewal", looks::renewal, &["FREED_RELAXED", "FREED_READ_RELAXED"]),
    ("ticks", looks::ticks, &["LINE_RELAXED", "LINE_READ_RELAXED"]),
    ("pending", looks::pending, &["TURNED_RELAXED", "POSTED_RELAXED", "SUM_READ_RELAXED", "NO_SECOND_LOOK"]),
    ("segment", segment::check, &["NOT_ANNOUNCED", "WORDS_RELAXED", "COMPLETE_RELAXED", "NO_SECOND_LOOK"]),
];

/// Runs one check in a process of its own. Returns the executions that it explored, or `None` if it failed, and what it said.
fn run(name: &str, mutant: Option<&str>) -> (Option<String>, String) {
    let own = std::env::current_exe().expect("a path of this program");
    let out = Command::new(own).arg(name).args(mutant).stdin(Stdio::null()).output().expect("a process");
    let said = String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
    (out.status.success().then(|| said.trim().to_owned()), said)
}

fn run_all() -> ExitCode {
    let mut failed = 0;
    for (name, _, mutants) in CHECKS {
        match run(name, None) {
            (Some(executions), _) => println!("{name}: ok, {executions} executions"),
            (None, said) => {
                failed += 1;
                println!("{name}: FAILED\n{said}");
            }
        }
        for mutant in *mutants {
            if run(name, Some(mutant)).0.is_some() {
                failed += 1;
                println!("{name}: mutant {mutant} NOT CAUGHT");
            } else {
                println!("{name}: mutant {mutant} caught");
            }
        }
    }
    if failed == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let Some(name) = words.first() else { return run_all() };
    let names: Vec<&str> = CHECKS.iter().map(|(name, ..)| *name).collect();
    let Some((_, check, mutants)) = CHECKS.iter().find(|(known, ..)| known == name) else {
        eprintln!("protocols: no check is called {name}; there are {}", names.join(", "));
        return ExitCode::from(2);
    };
    if let Some(mutant) = words.get(1) {
        if !mutants.contains(&mutant.as_str()) {
            eprintln!("protocols: {name} has no mutant {mutant}; it has {}", mutants.join(", "));
            return ExitCode::from(2);
        }
        MUTANT.set(mutant.clone()).expect("set once");
    }
    check();
    println!("{}", EXECUTIONS.load(Ordering::Relaxed));
    ExitCode::SUCCESS
}

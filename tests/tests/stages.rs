//! Ctrl-C at every stage of the commands that measure by themselves: whatever they were doing, they end
//! soon, say nothing by halves, and leave nobody behind.

use std::{
    process::Command,
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use latency_tests::schedlat::{Outcome, Recording, binary};
use procfs::process::{ProcState, all_processes};
use rustix::process::Signal;

/// Before anything is set up, while it attaches, and when it measures.
const STAGES: [Duration; 3] = [
    Duration::from_millis(5),
    Duration::from_millis(150),
    Duration::from_secs(1),
];

/// Far less than any of the commands would take, on a busy machine too.
const SOON: Duration = Duration::from_secs(8);

/// Starts it as the leader of a session of its own.
fn start(words: &[&str]) -> Result<Recording> {
    let mut command = Command::new(binary()?);
    command.args(words);
    Recording::of(command)
}

/// Sends what the terminal sends, and waits for the end.
fn interrupted(words: &[&str], after: Duration) -> Result<Outcome> {
    let running = start(words)?;
    let session = i32::try_from(running.pid())?;
    thread::sleep(after);
    running.signal_group(Signal::INT)?;
    let asked = Instant::now();
    let outcome = running.finish()?;
    ensure!(asked.elapsed() < SOON, "it took {:?}", asked.elapsed());
    nobody_is_left(session)?;
    // What is printed is printed whole.
    outcome.documents()?;
    Ok(outcome)
}

/// All that is left of a session ends in a moment.
fn nobody_is_left(session: i32) -> Result<()> {
    let began = Instant::now();
    loop {
        let left = members(session)?;
        if left.is_empty() {
            return Ok(());
        }
        ensure!(began.elapsed() < SOON, "left behind: {left:?}");
        thread::sleep(Duration::from_millis(20));
    }
}

fn members(session: i32) -> Result<Vec<String>> {
    // A process may end while it is looked at.
    let stats = all_processes()?.filter_map(|process| process.ok()?.stat().ok());
    let alive = stats.filter(|stat| !matches!(stat.state(), Ok(ProcState::Zombie)));
    let members = alive.filter(|stat| stat.session == session);
    Ok(members
        .map(|stat| format!("{} {}", stat.pid, stat.comm))
        .collect())
}

/// Interrupts it at every stage. It exits with one of `codes`, or as the signal does where its handlers
/// do not exist yet.
fn check(words: &[&str], codes: &[i32]) -> Result<()> {
    for after in STAGES {
        let context = || format!("{words:?} after {after:?}");
        let outcome = interrupted(words, after).with_context(context)?;
        let code = outcome.code();
        ensure!(
            code == 130 || codes.contains(&code),
            "{}: {code}, {}",
            context(),
            outcome.messages
        );
    }
    Ok(())
}

#[test]
fn c072_probes_obey_an_interrupt_at_every_stage() -> Result<()> {
    for line in [
        "probe wake --for 20s --policy other --format json",
        "probe pingpong --for 20s --placement same --format json",
        "probe yield --for 20s --count 5000000 --policy other --peer none --format json",
        "probe busy --for 20s --policy other --format json",
        "probe busy --for 20s --policy other --load cpu --format json",
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        check(&words, &[0])?;
    }
    Ok(())
}

#[test]
fn c072_bench_obeys_an_interrupt_with_all_it_has_started() -> Result<()> {
    let measured = "x=sleep 20";
    check(&["bench", "--format", "json", "--cmd", measured], &[143])?;
    // What comes before has a group of its own, which the terminal does not reach.
    let prepare = "sleep 20 & sleep 20; true";
    let words = ["bench", "--format", "json", "--prepare", prepare];
    check(&[&words[..], &["--cmd", "x=true"]].concat(), &[])
}

#[test]
fn a_preparation_that_does_not_obey_ends_at_the_second_interrupt() -> Result<()> {
    let prepare = "trap '' TERM; while :; do sleep 0.1; done";
    let words = ["bench", "--format", "json", "--prepare", prepare];
    let running = start(&[&words[..], &["--cmd", "x=true"]].concat())?;
    let session = i32::try_from(running.pid())?;
    thread::sleep(Duration::from_secs(1));
    running.signal(Signal::INT)?;
    thread::sleep(Duration::from_millis(500));
    ensure!(members(session)?.len() > 1, "it obeyed the first one");
    running.signal(Signal::INT)?;
    let outcome = running.finish()?;
    assert_eq!(outcome.code(), 130, "{}", outcome.messages);
    nobody_is_left(session)
}

#[test]
fn c072_verify_obeys_an_interrupt_at_every_stage() -> Result<()> {
    // A tool that is ended early has no figures, which is said.
    let line = "verify --format json -- cyclictest -q -D 20 -i 1000 -t 1 -p 80";
    let words: Vec<&str> = line.split(' ').collect();
    check(&words, &[0, 1, 143])
}

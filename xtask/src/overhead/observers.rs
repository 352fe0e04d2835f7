//! What schedlat and other observers add to a ping-pong, and schedlat's budget.
//!
//! Promises: every observer once in every round beside one bare run; no verdict from a reference that
//! added nothing; an observer that does not run here is left out by name, unless it is the reference.

use std::fs;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::outcome::{Column, Outcome};
use super::pairs::{ADDED, Pairs, QUARTILES, US_PER_OP, quantile};
use super::recorder::Recorder;
use super::{Setting, ping_pong};
use crate::{project, shell};

/// The observer that the budget is stated in.
const REFERENCE: &str = "runqlat";

const COLUMNS: &[Column] = &[
    Column {
        key: "observer",
        title: "observer",
        digits: 0,
    },
    US_PER_OP,
    ADDED,
    QUARTILES,
    Column {
        key: "of_runqlat",
        title: "of `runqlat`",
        digits: 2,
    },
    Column {
        key: "budget",
        title: "budget",
        digits: 2,
    },
];

/// One way to be observed.
#[derive(Debug)]
struct Observer {
    name: &'static str,
    command: Vec<String>,
    /// How much of what `runqlat` adds it may add.
    budget: Option<f64>,
    /// Whether the comparison goes on without it where it does not run.
    is_optional: bool,
    /// Whether it observes with programs, which are seen to be attached.
    has_programs: bool,
    pairs: Pairs,
}

impl Observer {
    fn new(name: &'static str, command: Vec<String>) -> Self {
        Self {
            name,
            command,
            budget: None,
            is_optional: false,
            has_programs: true,
            pairs: Pairs::default(),
        }
    }

    fn within(self, budget: f64) -> Self {
        Self {
            budget: Some(budget),
            ..self
        }
    }

    fn optional(self) -> Self {
        Self {
            is_optional: true,
            ..self
        }
    }

    fn without_programs(self) -> Self {
        Self {
            has_programs: false,
            ..self
        }
    }

    /// Starts and stops it once, which also shows that it can.
    fn warm_up(&self) -> Result<()> {
        Recorder::start(&self.command, self.has_programs)
            .and_then(Recorder::stop)
            .with_context(|| format!("cannot observe with {}", self.name))
    }

    fn run(&mut self, setting: &Setting, bare: f64) -> Result<()> {
        let run = || ping_pong::on_cpu(setting.cpu, setting.loops);
        let observed = Recorder::around(&self.command, self.has_programs, run)
            .with_context(|| format!("cannot observe with {}", self.name))?;
        self.pairs.add(bare, observed);
        Ok(())
    }
}

/// All observers that run here.
pub(super) fn measure(setting: &Setting) -> Result<Outcome> {
    let folder = project::target("overhead");
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let mut observers = those_that_run(all(setting)?)?;
    let mut bare_us = Vec::new();
    for round in 1..=setting.rounds {
        eprintln!("round {round} of {}", setting.rounds);
        let bare = ping_pong::on_cpu(setting.cpu, setting.loops)?;
        for observer in &mut observers {
            observer.run(setting, bare)?;
        }
        bare_us.push(bare);
    }
    // What perf recorded is hundreds of megabytes that nobody reads.
    fs::remove_dir_all(&folder).context("cannot remove target/overhead")?;
    Ok(outcome(&bare_us, &observers))
}

fn all(setting: &Setting) -> Result<Vec<Observer>> {
    let folder = project::target("overhead");
    let file = |name| folder.join(name).display().to_string();
    let record = |detail| setting.record(&["--detail", detail]);
    let with = |mut command: Vec<String>, arguments: &[&str]| {
        command.extend(arguments.iter().map(|&argument| argument.to_owned()));
        command
    };
    let runqlat = match &setting.runqlat {
        Some(path) => vec![path.display().to_string()],
        None => program("runqlat")?,
    };
    let perf = with(
        program("perf")?,
        &["sched", "record", "--output", &file("perf.data")],
    );
    let events = [
        "record",
        "-e",
        "sched_switch",
        "-e",
        "sched_wakeup",
        "-o",
        &file("trace.dat"),
    ];
    let mut observers = vec![
        Observer::new("`--detail empty`", record("empty")),
        Observer::new("`--detail basic`", record("basic")).within(0.35),
        Observer::new("`--detail causes`", record("causes")).within(0.6),
        Observer::new("default", record("full")).within(0.75),
        Observer::new(REFERENCE, runqlat),
        Observer::new("`perf sched record`", perf)
            .without_programs()
            .optional(),
        Observer::new("`trace-cmd record`", with(program("trace-cmd")?, &events))
            .without_programs()
            .optional(),
    ];
    if let (Ok(bpftrace), Ok(script)) = (program("bpftrace"), program("runqlat.bt")) {
        let command = [bpftrace, script].concat();
        observers.push(Observer::new("`bpftrace runqlat.bt`", command).optional());
    }
    Ok(observers)
}

fn those_that_run(observers: Vec<Observer>) -> Result<Vec<Observer>> {
    let mut running = Vec::new();
    for observer in observers {
        match observer.warm_up() {
            Ok(()) => running.push(observer),
            Err(error) if observer.is_optional => eprintln!("left out: {error:#}"),
            Err(error) => return Err(error),
        }
    }
    Ok(running)
}

fn program(name: &str) -> Result<Vec<String>> {
    let path = shell::find_program(name).with_context(|| format!("{name} is not installed"))?;
    Ok(vec![path.display().to_string()])
}

fn outcome(bare_us: &[f64], observers: &[Observer]) -> Outcome {
    let unit = observers
        .iter()
        .find(|observer| observer.name == REFERENCE)
        .map(|observer| &observer.pairs);
    let nothing = json!({ "observer": "nothing", "us_per_op": quantile(bare_us, 0.5) });
    let rows = observers.iter().map(|observer| {
        let mut row = observer.pairs.row();
        row.insert("observer".into(), json!(observer.name));
        row.insert("of_runqlat".into(), json!(observer.pairs.of(unit)));
        row.insert("budget".into(), json!(observer.budget));
        Value::Object(row)
    });
    let rows = [nothing].into_iter().chain(rows).collect();
    let exceeded = observers
        .iter()
        .filter_map(|observer| exceeded(observer, unit));
    Outcome {
        columns: COLUMNS,
        rows,
        exceeded: exceeded.collect(),
    }
}

/// What is wrong with what an observer added, in words.
fn exceeded(observer: &Observer, unit: Option<&Pairs>) -> Option<String> {
    let budget = observer.budget?;
    let name = observer.name;
    let Some(ratio) = observer.pairs.of(unit) else {
        return Some(format!(
            "{REFERENCE} added nothing measurable, so that {name} cannot be judged"
        ));
    };
    (ratio > budget).then(|| {
        format!("{name} adds {ratio:.3} of what {REFERENCE} adds, its budget is {budget:.2}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observer(name: &'static str, added_us: f64) -> Observer {
        let mut observer = Observer::new(name, Vec::new());
        observer.pairs.add(4.0, 4.0 + added_us);
        observer
    }

    #[test]
    fn budget_is_in_units_of_the_reference() {
        let reference = observer(REFERENCE, 2.0);
        let within = observer("a", 1.19).within(0.6);
        let beyond = observer("b", 1.21).within(0.6);
        let outcome = outcome(&[4.0], &[reference, within, beyond]);
        assert_eq!(
            outcome.exceeded,
            ["b adds 0.605 of what runqlat adds, its budget is 0.60"]
        );
        assert_eq!(outcome.rows[0]["observer"], "nothing");
        assert_eq!(outcome.rows[1]["of_runqlat"], 1.0);
    }

    #[test]
    fn reference_that_adds_nothing_is_no_reference() {
        let observers = [observer(REFERENCE, 0.0), observer("a", 0.1).within(0.6)];
        let outcome = outcome(&[4.0], &observers);
        assert_eq!(outcome.exceeded.len(), 1);
        assert_eq!(outcome.rows[2]["of_runqlat"], Value::Null);
    }
}

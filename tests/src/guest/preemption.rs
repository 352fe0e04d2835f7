//! The preemption models that a kernel can be switched to: the probe compares them by one command,
//! and causes are told under each.

use std::{
    fs, thread,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};

use super::{
    boot::WithoutDebugfs,
    checks::{FEW, check_counts, is_named, last_cpu},
};
use crate::{check, load::Load, observe::Observed, probe, schedlat::Schedlat};

const CONTROL: &str = "/sys/kernel/debug/sched/preempt";

/// A probe attaches before it switches, which takes an emulated machine long.
const SWITCH_LIMIT: Duration = Duration::from_mins(10);

/// All that the product knows.
const MODELS: [&str; 4] = ["none", "voluntary", "full", "lazy"];

/// The kernel's models, and how it shows them.
struct Models {
    shown: String,
}

impl Models {
    /// None where the kernel cannot switch.
    fn read() -> Result<Option<Self>> {
        if !fs::exists(CONTROL)? {
            return Ok(None);
        }
        let shown = fs::read_to_string(CONTROL).context("cannot read the preemption models")?;
        Ok(Some(Self { shown }))
    }

    fn has(&self, model: &str) -> bool {
        let plain = self.shown.replace(['(', ')'], " ");
        plain.split_whitespace().any(|word| word == model)
    }

    fn is_in_force(&self, model: &str) -> bool {
        self.shown.contains(&format!("({model})"))
    }

    /// Puts the model that is in force back when it is dropped.
    fn put_back(&self) -> Result<PutBack> {
        let (_, from) = self.shown.split_once('(').context("no model in force")?;
        let (before, _) = from.split_once(')').context("no model in force")?;
        Ok(PutBack(before.to_owned()))
    }
}

/// The model that was in force before.
struct PutBack(String);

impl Drop for PutBack {
    fn drop(&mut self) {
        // What comes next in this machine says under which model it runs.
        drop(fs::write(CONTROL, &self.0));
    }
}

/// `none,voluntary,full,lazy` idle and loaded, by one command: each model that the kernel has is
/// measured, each that it lacks is told, and the old one is put back.
pub(super) fn probe_compares() -> Result<String> {
    let all = MODELS.join(",");
    let line = format!(
        "--preempt {all} --load none,cpu --policy other --cpu 1 --interval 20ms --count 30"
    );
    let Some(models) = Models::read()? else {
        let outcome = probe::probe(&format!("wake {line}")).run()?;
        outcome.fails_with(1, &[CONTROL])?;
        return Ok(outcome.messages.trim_end().replace('\n', " / "));
    };
    let document = probe::wake(&line)?;
    let warnings = document.whole["warnings"].to_string();
    let mut measured = Vec::new();
    for model in MODELS {
        let under = |it: &&probe::WakeSeries| it.preemption.as_deref() == Some(model);
        let series: Vec<_> = document.series.iter().filter(under).collect();
        if !models.has(model) {
            ensure!(series.is_empty(), "{model} is measured, which is not there");
            let told = format!("preempt={model}:");
            ensure!(warnings.contains(&told), "no word of {model}: {warnings}");
            continue;
        }
        let loads: Vec<_> = series.iter().map(|it| it.load.as_str()).collect();
        ensure!(loads == ["none", "cpu"], "{model}: {loads:?}");
        for it in series {
            ensure!(it.samples.matched > FEW, "{model}: {:?}", it.samples);
            ensure!(it.disagreement.max_ns <= 100, "{model}: {it:?}");
        }
        measured.push(model);
    }
    ensure!(!document.warns("model_not_put_back"), "{warnings}");
    let after = fs::read_to_string(CONTROL)?;
    ensure!(
        after == models.shown,
        "it was {}, now {after}",
        models.shown
    );
    Ok(format!("{} measured", measured.join(", ")))
}

/// Nobody can write the old model while debugfs is away, so that the probe has to tell.
pub(super) fn failure_is_told() -> Result<String> {
    let models = Models::read()?.context("this kernel cannot switch its model")?;
    let is_other = |model: &&str| models.has(model) && !models.is_in_force(model);
    let other = MODELS.into_iter().find(is_other);
    let other = other.with_context(|| format!("the only model is {}", models.shown))?;
    let _put_back = models.put_back()?;
    let line = format!("wake --preempt {other} --policy other --cpu 1 --interval 20ms --for 10s");
    let running = probe::probe(&line).spawn()?;
    let began = Instant::now();
    while fs::read_to_string(CONTROL)? == models.shown {
        ensure!(began.elapsed() < SWITCH_LIMIT, "nobody switched to {other}");
        thread::sleep(Duration::from_millis(10));
    }
    let away = WithoutDebugfs::take()?;
    let outcome = running.finish()?.success()?;
    drop(away);
    let document = probe::Document::<probe::WakeSeries>::of("wake", &outcome)?;
    let warnings = document.whole["warnings"].to_string();
    ensure!(document.warns("model_not_put_back"), "{warnings}");
    ensure!(fs::read_to_string(CONTROL)? != models.shown);
    Ok(String::new())
}

/// Two burners, one of them inside long system calls, lose the CPU to one another when a timer ends
/// their slice, and to a real-time task because it is of a higher class, whatever the model.
pub(super) fn causes_are_right() -> Result<String> {
    let Some(models) = Models::read()? else {
        return causes_under("the only model");
    };
    let mut said = Vec::new();
    for model in MODELS.into_iter().filter(|model| models.has(model)) {
        let _put_back = models.put_back()?;
        fs::write(CONTROL, model).with_context(|| format!("cannot switch to {model}"))?;
        said.push(causes_under(model).with_context(|| format!("under preempt={model}"))?);
        is_told(model)?;
    }
    ensure!(fs::read_to_string(CONTROL)? == models.shown);
    Ok(said.join("; "))
}

fn causes_under(model: &str) -> Result<String> {
    let cpu = last_cpu()?;
    let fifo = "periodic 3600 --interval-us 20000 --work-us 200 --fifo 50 --name rt-periodic";
    let start = |kind: &str| Load::workload(&format!("{kind} --cpu {cpu}"));
    let loads = [
        start("burn 3600")?,
        start("burn-syscall 3600")?,
        start(fifo)?,
    ];
    let observed = Observed::roughly(&loads.each_ref(), Duration::from_secs(3))?;
    check_counts(&observed.report)?;
    let ids = [loads[0].pid(), loads[1].pid()];
    for (mine, fellow) in [(ids[0], ids[1]), (ids[1], ids[0])] {
        let row = observed.report.task(mine)?;
        let slices = check::loses_to_fellow(&row.stats, fellow, &["tick", "hrtick"], 0.95)?;
        ensure!(slices > FEW, "only {slices} slices");
    }
    let higher = ids.map(|tid| {
        let row = observed.report.task(tid)?;
        let count = row.stats.cause("higher_class").count;
        Ok::<_, anyhow::Error>((count, is_named(row, "higher_class", "rt-periodic")))
    });
    let (mut count, mut named) = (0, 0);
    for of_one in higher {
        let of_one = of_one?;
        count += of_one.0;
        named += of_one.1;
    }
    ensure!(count > FEW, "a real-time task took the CPU {count} times");
    // A real-time kernel has threads of that class of its own, for timers and interrupts.
    check::share("losses to a higher class by its task", named, count, 0.5)?;
    let totals = &observed.report.totals;
    let (tick, hrtick) = (totals.cause("tick").count, totals.cause("hrtick").count);
    Ok(format!(
        "{model}: tick {tick}, hrtick {hrtick}, higher class {count}"
    ))
}

/// `doctor` knows the model in force.
fn is_told(model: &str) -> Result<()> {
    let document = Schedlat::command("doctor").args("--format json").run()?;
    let told = document.only_document()?["host"]["preemption"].to_string();
    ensure!(
        told.contains(model) || told.contains("rt"),
        "under preempt={model} doctor says {told}"
    );
    Ok(())
}

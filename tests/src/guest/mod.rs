//! What runs inside the test VM: `/init` sets the machine up, runs every check, says a verdict and
//! powers off.
//!
//! Emulated time is meaningless: the checks here look at shares, counts and the two accounts.
//! Booting and judging the output is left to `cargo xtask vm`.

mod boot;
mod checks;
mod clocks;
mod hotplug;
mod lists;
mod lockdep;
mod pauses;
mod preemption;
mod refusal;
mod suspend;
mod topology;

use std::{
    io::{Write as _, stdout},
    panic::catch_unwind,
    time::Instant,
};

use anyhow::{Context as _, Result, anyhow, ensure};

/// Runs as `/init`. Refuses to be anything else, since it ends by switching the machine off.
pub fn main() -> Result<()> {
    ensure!(
        std::process::id() == 1,
        "this is /init of the test VM and powers the machine off"
    );
    let verdict = boot::set_up().and_then(|()| run_checks());
    let word = match &verdict {
        Ok(true) => "pass",
        Ok(false) => "fail",
        Err(cause) => {
            say(&format!("guest: fail set-up: {cause:#}"));
            "fail"
        }
    };
    say(&format!("guest: verdict {word}"));
    boot::power_off()
}

/// Runs every check of the list that the machine was booted for, also after one has failed.
fn run_checks() -> Result<bool> {
    say(&format!("guest: kernel {}", boot::kernel_release()));
    pauses::watch();
    let mut all_passed = true;
    let list = boot::asked("checks")?.context("no schedlat.checks= in the command line")?;
    let only = boot::asked("only")?;
    for (name, check) in lists::checks(&list, only.as_deref())? {
        pauses::reset();
        let start = Instant::now();
        let outcome = catch_unwind(check).unwrap_or_else(|_| Err(anyhow!("it panicked")));
        let took_s = start.elapsed().as_secs();
        match outcome {
            Ok(note) => say(&format!("guest: pass {name} in {took_s} s {note}")),
            Err(cause) => {
                all_passed = false;
                say(&format!("guest: fail {name}: {cause:#}"));
            }
        }
    }
    Ok(all_passed)
}

/// One line on the console.
fn say(line: &str) {
    let mut out = stdout().lock();
    // There is nobody to tell that the console is gone.
    drop(writeln!(out, "{line}").and_then(|()| out.flush()));
}

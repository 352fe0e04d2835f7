//! What runs inside the test VM: `/init` sets the machine up, runs every check, says a verdict and
//! powers off.
//!
//! Emulated time is meaningless: the checks here look at shares, counts and the two accounts.
//! Booting and judging the output is left to `cargo xtask vm`.

mod boot;
mod checks;

use std::{
    io::{Write as _, stdout},
    panic::catch_unwind,
};

use anyhow::{Result, anyhow, ensure};

/// Runs as `/init`. Refuses to be anything else, since it ends by switching the machine off.
pub fn main() -> Result<()> {
    ensure!(
        std::process::id() == 1,
        "this is /init of the test VM and powers the machine off"
    );
    let verdict = boot::set_up().map(|()| run_checks());
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

/// Runs all checks, also after one has failed.
fn run_checks() -> bool {
    say(&format!("guest: kernel {}", boot::kernel_release()));
    let mut all_passed = true;
    for (name, check) in checks::ALL {
        let outcome = catch_unwind(check).unwrap_or_else(|_| Err(anyhow!("it panicked")));
        match outcome {
            Ok(note) if note.is_empty() => say(&format!("guest: pass {name}")),
            Ok(note) => say(&format!("guest: pass {name} ({note})")),
            Err(cause) => {
                all_passed = false;
                say(&format!("guest: fail {name}: {cause:#}"));
            }
        }
    }
    all_passed
}

/// One line on the console.
fn say(line: &str) {
    let mut out = stdout().lock();
    // There is nobody to tell that the console is gone.
    drop(writeln!(out, "{line}").and_then(|()| out.flush()));
}

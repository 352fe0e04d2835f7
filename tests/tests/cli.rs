//! The command line as a newcomer meets it: what is refused, how it is said, and with which rights it works.

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::PathBuf,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result};
use latency_tests::{
    btf, check,
    load::Load,
    schedlat::{Outcome, Schedlat, binary},
};

fn record(line: &str) -> Result<Outcome> {
    Schedlat::command("record").args(line).run()
}

#[test]
fn unknown_targets_are_refused_with_a_hint() -> Result<()> {
    record("--pid 4194303 --for 1s")?.fails_with(1, &["4194303", "--tid"])?;
    record("--tid 4194303 --for 1s")?.fails_with(1, &["4194303"])?;
    record("--user no-such-user --for 1s")?.fails_with(1, &["no-such-user"])?;
    record("--cgroup /no/such/group --for 1s")?.fails_with(1, &["/no/such/group"])
}

#[test]
fn bad_arguments_are_refused_before_anything_starts() -> Result<()> {
    for (line, word) in [
        ("--comm [a --for 1s", "[a"),
        ("--for tomorrow", "tomorrow"),
        ("--for 1s --interval 0s", "interval"),
        ("--pid abc", "abc"),
        ("--format xml", "xml"),
        ("--by colour", "colour"),
        ("--for -1s", "-1s"),
    ] {
        let began = Instant::now();
        let outcome = record(line)?;
        assert_eq!(outcome.code(), 2, "'{line}': {}", outcome.messages);
        assert!(
            outcome.messages.contains(word),
            "'{line}': {}",
            outcome.messages
        );
        assert!(
            outcome.messages.starts_with("error: "),
            "'{line}': {}",
            outcome.messages
        );
        assert!(
            outcome.lines.is_empty(),
            "'{line}' printed {}",
            outcome.output()
        );
        assert!(
            began.elapsed() < Duration::from_secs(1),
            "'{line}' took {:?}",
            began.elapsed()
        );
    }
    Ok(())
}

#[test]
fn c115_a_duration_without_a_unit_is_refused_or_explained() -> Result<()> {
    let outcome = record("--for 5")?;
    assert_eq!(outcome.code(), 2, "{}", outcome.messages);
    assert!(outcome.messages.contains("5s"), "{}", outcome.messages);
    let outcome = record("--over 5 --for 1s")?;
    assert_eq!(outcome.code(), 2, "{}", outcome.messages);
    assert!(outcome.messages.contains("5ms"), "{}", outcome.messages);
    Ok(())
}

#[test]
fn an_unwritable_output_is_found_out_before_measuring() -> Result<()> {
    let began = Instant::now();
    let outcome = record("--for 30s --output /no/such/folder/report.json")?;
    assert!(
        began.elapsed() < Duration::from_secs(5),
        "after {:?}",
        began.elapsed()
    );
    outcome.fails_with(1, &["/no/such/folder/report.json"])
}

#[test]
fn c076_asking_for_none_or_too_many_rows_is_no_trouble() -> Result<()> {
    let _load = Load::workload("burn 20 --cpu 1")?;
    let all = Schedlat::record()
        .args("--for 500ms --top 100000")
        .report()?;
    assert!(!all.tasks.is_empty());
    let none = Schedlat::record().args("--for 500ms --top 0").report()?;
    assert!(
        none.totals.on_cpu_ns > 0,
        "the totals do not depend on the rows shown"
    );
    Ok(())
}

#[test]
fn c076_a_filter_that_matches_nothing_is_an_empty_report() -> Result<()> {
    let report = Schedlat::record()
        .comm("no-such-name")
        .args("--for 500ms")
        .report()?;
    assert!(report.tasks.is_empty());
    assert_eq!(report.totals.waits.count(), 0);
    let text = Schedlat::command("record")
        .args("--for 500ms --comm no-such-name")
        .run()?;
    let text = text.success()?.output();
    assert!(
        text.contains("no tasks") || text.contains("no samples"),
        "{text}"
    );
    Ok(())
}

#[test]
fn c117_pid_is_a_process_and_tid_a_thread() -> Result<()> {
    let load = Load::workload("team 30 --threads 3 --thread-name pool --name leader")?;
    let worker = *load.tids.first().context("no worker")?;
    let brief = || Schedlat::record().args("--for 1s");

    let process = brief().pid(load.pid()).report()?;
    assert_eq!(process.tasks.len(), 4, "all threads of the process");
    let thread = brief().args(&format!("--tid {worker}")).report()?;
    assert_eq!(thread.tasks.len(), 1);
    assert_eq!(thread.task(worker)?.tgid, Some(load.pid()));
    let pool = brief().comm("pool").report()?;
    assert_eq!(pool.tasks.len(), 3, "the threads of that name");
    let both = brief()
        .comm("pool")
        .args(&format!("--tid {}", load.pid()))
        .report()?;
    assert_eq!(both.tasks.len(), 4, "the union of two targets");
    for report in [&process, &thread, &pool, &both] {
        check::sound(report)?;
    }
    // A thread's id is no process id: the hint says which option takes it.
    let line = format!("--pid {worker} --for 1s");
    record(&line)?.fails_with(1, &[&worker.to_string(), "--tid"])
}

#[test]
fn a_user_is_selected_by_name_or_number() -> Result<()> {
    let home = Public::of_binary()?;
    let load = home.path.with_file_name("workload");
    fs::copy(latency_tests::load::workload_binary()?, &load)?;
    let line = format!(
        "--reuid 65534 --clear-groups {} burn 20 --cpu 1",
        load.display()
    );
    let words: Vec<&str> = line.split(' ').collect();
    let load = Load::program("setpriv", &words)?;
    std::thread::sleep(Duration::from_millis(300));
    for user in ["nobody", "65534"] {
        let report = Schedlat::record()
            .args("--for 1s --user")
            .arg(user)
            .report()?;
        check::sound(&report)?;
        assert!(
            report.task(load.pid()).is_ok(),
            "{user}: {:?}",
            report.tasks.len()
        );
        assert!(
            report.tasks.len() < 10,
            "{user} has {} tasks",
            report.tasks.len()
        );
    }
    Ok(())
}

/// The binary where everybody may run it.
struct Public {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

impl Public {
    fn of_binary() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755))?;
        let path = folder.path().join("schedlat");
        fs::copy(binary()?, &path)?;
        Ok(Self {
            _folder: folder,
            path,
        })
    }

    /// Runs it as `nobody` with these capabilities.
    fn run_with(&self, capabilities: &str, line: &str) -> Result<Outcome> {
        let names = capabilities.split(' ').filter(|name| !name.is_empty());
        let set = names.fold("-all".to_owned(), |set, name| set + ",+" + name);
        let mut command = std::process::Command::new("setpriv");
        command.args(["--reuid", "65534", "--clear-groups"]);
        command
            .arg(format!("--inh-caps={set}"))
            .arg(format!("--ambient-caps={set}"));
        command
            .arg(&self.path)
            .args(line.split(' '))
            .current_dir("/");
        latency_tests::schedlat::Recording::of(command)?.finish()
    }
}

#[test]
fn c053_without_root_the_missing_capabilities_are_named() -> Result<()> {
    let public = Public::of_binary()?;
    let line = "record --for 1s --format json";
    public
        .run_with("", line)?
        .fails_with(1, &["CAP_BPF", "CAP_PERFMON"])?;
    public
        .run_with("bpf", line)?
        .fails_with(1, &["CAP_PERFMON"])?;
    let outcome = public.run_with("bpf perfmon syslog", line)?.success()?;
    let report = outcome.report()?;
    assert!(report.totals.on_cpu_ns > 0);
    check::switches_agree(&report.audit, latency_tests::truth::n_cpus()?)
}

#[test]
fn without_syslog_causes_are_degraded_and_it_says_so() -> Result<()> {
    let public = Public::of_binary()?;
    let doctor = public.run_with("bpf perfmon", "doctor")?;
    assert_eq!(doctor.code(), 0, "{}", doctor.messages);
    assert!(
        doctor.output().contains("CAP_SYSLOG"),
        "{}",
        doctor.output()
    );
    let outcome = public
        .run_with("bpf perfmon", "record --for 1s --format json")?
        .success()?;
    let report = outcome.documents()?.pop().context("no document")?;
    let degraded = report["degraded"].to_string();
    assert!(degraded.contains("CAP_SYSLOG"), "degraded: {degraded}");
    // Stacks without names are no stacks.
    assert!(degraded.contains("kernel paths"), "degraded: {degraded}");
    assert_eq!(report["stacks"], serde_json::json!([]));
    assert!(!report["longest"].to_string().contains("\"stack\""));
    public
        .run_with("bpf perfmon", "record --for 1s --format folded")?
        .fails_with(1, &["kernel addresses are hidden", "CAP_SYSLOG"])
}

#[test]
fn doctor_says_that_record_works_here_and_what_is_missing() -> Result<()> {
    let outcome = Schedlat::command("doctor").run()?.success()?;
    assert!(
        outcome.output().contains("available"),
        "{}",
        outcome.output()
    );
    let outcome = Schedlat::command("doctor")
        .args("--format json")
        .run()?
        .success()?;
    let document = outcome.documents()?.pop().context("no document")?;
    assert_eq!(document["schema"], "schedlat.doctor");
    let nobody = Public::of_binary()?.run_with("", "doctor")?;
    assert_ne!(
        nobody.code(),
        0,
        "doctor must say by its exit code that record cannot work"
    );
    Ok(())
}

#[test]
fn c053_a_low_memlock_limit_is_no_trouble() -> Result<()> {
    let recorder = Schedlat::record()
        .args("--for 1s")
        .under("prlimit --memlock=65536:65536");
    let outcome = recorder.run()?.success()?;
    assert!(!outcome.messages.contains("error"), "{}", outcome.messages);
    check::sound(&outcome.report()?)
}

#[test]
fn inside_a_pid_namespace_what_cannot_be_followed_is_refused() -> Result<()> {
    let inside = || Schedlat::record().under("unshare --pid --fork --mount-proc");
    inside().pid(1).run()?.fails_with(1, &["pid namespace"])?;
    inside()
        .running("true")
        .run()?
        .fails_with(1, &["pid namespace"])
}

#[test]
fn a_command_may_have_arguments_of_any_bytes() -> Result<()> {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt as _};
    let words = ["sh", "-c", "exit 7", "sh"].map(OsStr::new);
    let odd = OsStr::from_bytes(b"\xff\x80");
    let outcome = Schedlat::record()
        .running_words(&[&words[..], &[odd]].concat())
        .run()?;
    assert_eq!(outcome.code(), 7, "{}", outcome.messages);
    Ok(())
}

#[test]
fn c059_a_kernel_without_type_information_is_named() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let broken = folder.path().join("btf");
    let run = || btf::run_with(&broken, "record --for 1s");
    fs::write(&broken, "")?;
    run()?.fails_with(1, &["/sys/kernel/btf/vmlinux"])?;
    let good = fs::read(btf::PATH)?;
    fs::write(&broken, &good[..good.len() / 2])?;
    let outcome = run()?;
    outcome.fails_with(1, &["/sys/kernel/btf/vmlinux"])?;
    assert!(
        outcome.messages.lines().count() <= 5,
        "no dump: {}",
        outcome.messages
    );
    Ok(())
}

#[test]
fn help_and_version_are_successes_on_stdout() -> Result<()> {
    for command in ["--help", "--version", "help"] {
        let outcome = Schedlat::command(command).run()?.success()?;
        assert!(
            outcome.output().contains("schedlat"),
            "{command}: {}",
            outcome.output()
        );
    }
    Ok(())
}

#[test]
fn progress_is_shown_on_a_terminal_and_nowhere_else() -> Result<()> {
    let line = "record --for 3s --output /dev/null";
    let piped = Schedlat::command("record").args("--for 300ms").run()?;
    assert_eq!(piped.success()?.messages, "", "in a pipe");
    let mut command = std::process::Command::new("script");
    let in_terminal = format!("{} {line}", binary()?.display());
    command.args(["-qec", &in_terminal, "/dev/null"]);
    let outcome = latency_tests::schedlat::Recording::of(command)?.finish()?;
    let shown = outcome.success()?.output();
    let advances = ["recording, 1 s", "recording, 2 s"];
    assert!(
        advances.iter().any(|line| shown.contains(line)),
        "{shown:?}"
    );
    assert!(shown.contains("\u{1b}[K"), "it is cleared: {shown:?}");
    Ok(())
}

#[test]
fn a_strict_recording_without_breach_succeeds() -> Result<()> {
    let _load = Load::workload("burn 20 --cpu 1")?;
    let report = Schedlat::record().args("--for 1s --strict").report()?;
    assert!(report.audit.ok);
    Ok(())
}

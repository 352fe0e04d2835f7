//! The parts of waits in words.

/// What a part is called.
pub(super) fn name(key: &str) -> &'static str {
    match key {
        "other_tasks" => "other tasks",
        "hard_irq" => "interrupts",
        "softirq" => "softirqs",
        "tick" => "the tick",
        "throttled" => "out of quota",
        "idle_exit" => "idle exit",
        "moved" => "moved between CPUs",
        "unattributed" => "tasks whose names were not kept",
        _ => "unexplained",
    }
}

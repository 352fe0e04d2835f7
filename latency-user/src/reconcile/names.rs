//! Names of those whom the kernel's events tell by number.

use std::collections::{BTreeMap, HashMap};

use latency_common::interrupt::Source;

use crate::{
    analysis,
    model::{InterruptIdent, Report, probe::OtherTask},
};

/// What the recorder learned about names.
#[derive(Debug)]
pub struct Names<'a> {
    tasks: HashMap<u32, &'a str>,
    interrupts: HashMap<(&'static str, Option<u32>), &'a str>,
}

impl<'a> Names<'a> {
    /// Those of a recording, and of tasks that were asked for their names.
    #[must_use]
    pub fn of(record: &'a Report, others: &'a [OtherTask]) -> Self {
        let asked = others
            .iter()
            .filter_map(|task| Some((task.tid, task.comm.as_deref()?)));
        let culprits = record.rows.iter().flat_map(|row| &row.stats.blame);
        let culprits = culprits.map(|blame| (blame.culprit.tid, blame.culprit.comm.as_str()));
        let rows = record.rows.iter();
        let rows = rows.filter_map(|row| Some((row.ident.tid?, row.ident.comm.as_deref()?)));
        let interrupts = record.interrupts.iter().map(|total| {
            let InterruptIdent { kind, number, name } = &total.ident;
            ((*kind, *number), name.as_str())
        });
        Self {
            tasks: asked.chain(culprits).chain(rows).collect(),
            interrupts: interrupts.collect(),
        }
    }

    /// The task's name; none where it was never heard.
    #[must_use]
    pub fn task(&self, tid: u32) -> Option<&'a str> {
        match tid {
            0 => Some("idle"),
            tid => self.tasks.get(&tid).copied(),
        }
    }

    /// The interrupt's name.
    #[must_use]
    pub fn interrupt(&self, source: Source) -> String {
        let InterruptIdent { kind, number, name } =
            analysis::interrupt(source, &BTreeMap::default());
        let known = self.interrupts.get(&(kind, number));
        known.map_or(name, |known| (*known).to_owned())
    }
}

#[cfg(test)]
mod tests {
    use latency_common::interrupt::InterruptKind;

    use super::*;
    use crate::report::fixture;

    #[test]
    fn names_are_those_of_the_recording() {
        let record = fixture::report();
        let others = [OtherTask {
            tid: 5,
            comm: Some("make".to_owned()),
            ..OtherTask::default()
        }];
        let names = Names::of(&record, &others);
        assert_eq!(names.task(5), Some("make"));
        assert_eq!(names.task(991), Some("pg_dump"));
        assert_eq!(names.task(4121), Some("postgres"));
        assert_eq!(names.task(0), Some("idle"));
        assert_eq!(names.task(6), None);
        let softirq = Source::new(InterruptKind::Softirq, 3);
        assert_eq!(names.interrupt(softirq), "NET_RX");
        let unheard = Source::new(InterruptKind::HardIrq, 9);
        assert_eq!(names.interrupt(unheard), "hard irq 9");
    }
}

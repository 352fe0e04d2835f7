//! What this kernel and this user can do, each feature with the reason and what it would take.

use serde::Serialize;

use crate::{
    host,
    kernel::{self, Availability, Feature, Features, Rights, btf::KernelTypes},
    model::Host,
};

/// The answer of `doctor`.
#[derive(Debug, Serialize)]
pub struct Diagnosis {
    schema: &'static str,
    version: &'static str,
    host: Host,
    /// Whether `record` works here.
    pub can_record: bool,
    features: Vec<Feature>,
}

impl Diagnosis {
    /// Looks at the kernel, without attaching anything.
    #[must_use]
    pub fn make() -> Self {
        let release = kernel::release();
        let features = match KernelTypes::read(&release) {
            Ok(types) => Features::detect(&types, &release, Rights::read())
                .list()
                .to_vec(),
            Err(error) => vec![Feature {
                name: "type information",
                availability: Availability::Missing,
                is_required: true,
                why: error.to_string(),
                remedy: "a kernel of 5.15 or later with CONFIG_DEBUG_INFO_BTF=y".to_owned(),
            }],
        };
        Self {
            schema: "schedlat.doctor",
            version: env!("CARGO_PKG_VERSION"),
            host: host::collect(),
            can_record: features
                .iter()
                .all(|it| !it.is_required || it.availability == Availability::Available),
            features,
        }
    }
}

/// For machines.
pub fn json(diagnosis: &Diagnosis) -> serde_json::Result<String> {
    serde_json::to_string_pretty(diagnosis).map(|text| text + "\n")
}

/// For people.
#[must_use]
pub fn text(diagnosis: &Diagnosis) -> String {
    let host = &diagnosis.host;
    let mut text = format!(
        "schedlat {} on Linux {} {}, {} CPUs, preemption {}, hypervisor {}, cgroup {}, lockdown {}\n\n",
        diagnosis.version,
        host.kernel,
        host.arch,
        host.n_cpus,
        host.preemption,
        host.hypervisor,
        host.cgroup_mode,
        host.lockdown,
    );
    let names = diagnosis.features.iter().map(|it| it.name.len());
    let width = names.max().unwrap_or(0);
    for feature in &diagnosis.features {
        text += &line(feature, width);
    }
    text + if diagnosis.can_record {
        "\n`schedlat record` works here.\n"
    } else {
        "\n`schedlat record` does not work here.\n"
    }
}

/// A feature with its reason, and below it what it would take, if anything.
fn line(feature: &Feature, width: usize) -> String {
    let availability = match feature.availability {
        Availability::Available => "available",
        Availability::Degraded => "degraded",
        Availability::Missing => "missing",
    };
    let remedy = match feature.remedy.as_str() {
        "" => String::new(),
        remedy => format!("{:<9}  {:<width$}  it would take: {remedy}\n", "", ""),
    };
    let (name, why) = (feature.name, &feature.why);
    format!("{availability:<9}  {name:<width$}  {why}\n{remedy}")
}

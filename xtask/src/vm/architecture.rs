//! What the emulated machines of an architecture need: an emulator, a console, a tool chain.
//!
//! Promises: all that differs between architectures when a machine is built and started.
//! Leaves to others: what differs between the machines of one, which is the plan ([`super::plan`]).

use anyhow::{Result, bail};

use super::clock;
use crate::debian::install::{Program, ensure_installed};
use crate::release::Target;
use crate::setup;

/// A kind of processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Architecture {
    /// The one that the project is built on.
    Amd64,
    Arm64,
}

/// The programs are static, so that the machine needs no library of its architecture.
const ARM64: Target = Target {
    triple: "aarch64-unknown-linux-gnu",
    flags: &[
        "-Clinker=aarch64-linux-gnu-gcc",
        "-Ctarget-feature=+crt-static",
    ],
};

const AMD64_PROGRAMS: [Program; 1] = [Program::of("qemu-system-x86_64", "qemu-system-x86")];

const ARM64_PROGRAMS: [Program; 4] = [
    Program::of("qemu-system-aarch64", "qemu-system-arm"),
    Program::of("aarch64-linux-gnu-gcc", "gcc-aarch64-linux-gnu"),
    Program::of("aarch64-linux-gnu-strip", "binutils-aarch64-linux-gnu"),
    Program::of("/usr/aarch64-linux-gnu/lib/libc.a", "libc6-dev-arm64-cross"),
];

impl Architecture {
    /// As Debian calls it.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Amd64 => "amd64",
            Self::Arm64 => "arm64",
        }
    }

    /// How names of machines and files end that are not this machine's architecture.
    pub(crate) const fn suffix(self) -> &'static str {
        match self {
            Self::Amd64 => "",
            Self::Arm64 => "-arm64",
        }
    }

    /// What its programs are built for; none is this machine.
    pub(crate) const fn target(self) -> Option<Target> {
        match self {
            Self::Amd64 => None,
            Self::Arm64 => Some(ARM64),
        }
    }

    /// Installs the programs that are missing; Rust's standard library is the user's to add.
    pub(crate) fn ensure_buildable(self) -> Result<()> {
        if let Some(Target { triple, .. }) = self.target() {
            let library = setup::sysroot()?.join("lib/rustlib").join(triple);
            if !library.join("lib").is_dir() {
                bail!("Rust has no library for {triple}\nhelp: rustup target add {triple}");
            }
        }
        match self {
            Self::Amd64 => ensure_installed(&AMD64_PROGRAMS),
            Self::Arm64 => ensure_installed(&ARM64_PROGRAMS),
        }
    }

    /// Removes debug information from its programs.
    pub(crate) const fn strip(self) -> &'static str {
        match self {
            Self::Amd64 => "strip",
            Self::Arm64 => "aarch64-linux-gnu-strip",
        }
    }

    pub(crate) const fn emulator(self) -> &'static str {
        match self {
            Self::Amd64 => "qemu-system-x86_64",
            Self::Arm64 => "qemu-system-aarch64",
        }
    }

    /// The emulator's processor and board.
    pub(crate) const fn hardware(self) -> &'static [&'static str] {
        match self {
            Self::Amd64 => &["-cpu", "max,la57=off"],
            // Pointers signed by the processor's own algorithm take an emulator long.
            Self::Arm64 => &["-cpu", "max,pauth-impdef=on", "-machine", "virt"],
        }
    }

    /// The boot parameters that tell its kernel the console and the clock.
    pub(crate) fn boot_parameters(self) -> String {
        match self {
            Self::Amd64 => format!("console=ttyS0 tsc=reliable{}", clock::parameter()),
            // Its clock is the emulator's, whose rate the processor tells. A kernel at a random address is
            // hidden from user space, by a change of page tables at each entry that takes an emulator long.
            Self::Arm64 => "console=ttyAMA0 nokaslr".to_owned(),
        }
    }
}

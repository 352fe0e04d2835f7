//! What has to be read before anything can be loaded: tens of milliseconds each, so at once.

use std::thread;

use aya::{Btf, EbpfLoader};

use super::{
    btf::{KernelTypes, VMLINUX},
    features::Features,
    rights::Rights,
};
use crate::Error;

/// aya, ready to load: it reads the kernel's types for itself.
#[expect(
    missing_debug_implementations,
    reason = "it holds a hundred thousand types"
)]
pub struct Loader {
    /// For the loader itself.
    pub(super) object: EbpfLoader<'static>,
    /// For the programs, which are loaded after the object.
    pub(super) types: Btf,
}

impl Loader {
    fn new() -> Result<Self, Error> {
        Ok(Self {
            types: Btf::from_sys_fs().map_err(|error| Error::MalformedBtf {
                path: VMLINUX.into(),
                reason: error.to_string(),
            })?,
            object: EbpfLoader::new(),
        })
    }
}

/// Finds out what the kernel can do, for which its symbols are read, while aya reads its types.
pub fn prepare(
    types: &KernelTypes,
    release: &str,
    rights: Rights,
) -> Result<(Features, Loader), Error> {
    thread::scope(|scope| {
        let loader = scope.spawn(Loader::new);
        let features = Features::detect(types, release, rights);
        let loader = loader.join();
        Ok((
            features,
            loader.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?,
        ))
    })
}

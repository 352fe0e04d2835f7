//! The running kernel's type information: where fields lie, which functions and tracepoints exist.
//!
//! Everything that differs between kernels is decided here from types, never from the version.

use std::path::Path;

use super::btf_reader::{Member, Reader, kind};
use crate::Error;

/// Where the kernel shows its types.
pub const VMLINUX: &str = "/sys/kernel/btf/vmlinux";

/// The kernel's type information.
#[derive(Debug)]
pub struct KernelTypes {
    types: Reader,
}

impl KernelTypes {
    /// Reads the running kernel's.
    pub fn read(kernel: &str) -> Result<Self, Error> {
        let path = Path::new(VMLINUX);
        let bytes = std::fs::read(path).map_err(|source| Error::NoBtf {
            kernel: kernel.to_owned(),
            path: path.to_owned(),
            source,
        })?;
        Self::parse(bytes, path)
    }

    fn parse(bytes: Vec<u8>, path: &Path) -> Result<Self, Error> {
        let malformed = |reason: &str| Error::MalformedBtf {
            path: path.to_owned(),
            reason: reason.to_owned(),
        };
        if bytes.is_empty() {
            return Err(malformed("the file is empty"));
        }
        Ok(Self {
            types: Reader::new(bytes).map_err(malformed)?,
        })
    }

    /// Byte offset of a member, through embedded structures; `None` where this kernel has none.
    #[must_use]
    pub fn offset_of(&self, structure: &str, member: &str) -> Option<u32> {
        let Member {
            offset_bits,
            is_bits,
            ..
        } = self.member(structure, member)?;
        (!is_bits && offset_bits.is_multiple_of(8)).then_some(offset_bits / 8)
    }

    /// Bytes of a member.
    #[must_use]
    pub fn size_of(&self, structure: &str, member: &str) -> Option<u32> {
        self.types.size(self.member(structure, member)?.type_id)
    }

    /// A member, given as `member.of.a.member`.
    fn member(&self, structure: &str, path: &str) -> Option<Member> {
        let outermost = Member {
            type_id: self.types.find(kind::STRUCT, structure)?,
            offset_bits: 0,
            is_bits: false,
        };
        path.split('.').try_fold(outermost, |outer, name| {
            let inner = self.types.member(outer.type_id, name)?;
            Some(Member {
                offset_bits: outer.offset_bits.checked_add(inner.offset_bits)?,
                ..inner
            })
        })
    }

    /// Whether the kernel has a function of this name.
    #[must_use]
    pub fn has_function(&self, name: &str) -> bool {
        self.types.find(kind::FUNC, name).is_some()
    }

    /// Whether the kernel has a tracepoint of this name to which BPF can attach.
    #[must_use]
    pub fn has_tracepoint(&self, name: &str) -> bool {
        let name = format!("btf_trace_{name}");
        self.types.find(kind::TYPEDEF, &name).is_some()
    }

    /// Value of a constant of an enumeration.
    #[must_use]
    pub fn enum_value(&self, enumeration: &str, constant: &str) -> Option<u32> {
        let id = self.types.find(kind::ENUM, enumeration)?;
        self.types.constant(id, constant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_malformed(bytes: Vec<u8>) {
        let error = KernelTypes::parse(bytes, Path::new("btf")).err().unwrap();
        assert!(matches!(error, Error::MalformedBtf { .. }), "{error}");
    }

    #[test]
    fn empty_file_is_malformed() {
        check_malformed(Vec::new());
    }

    #[test]
    fn truncated_file_is_malformed() {
        check_malformed(vec![0x9f, 0xeb, 1, 0, 24, 0, 0, 0]);
    }

    #[test]
    fn file_of_another_kind_is_malformed() {
        check_malformed(vec![0x7f; 4096]);
    }
}

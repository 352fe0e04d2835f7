//! The running kernel's type information: where fields lie, which functions and tracepoints exist.
//!
//! Everything that differs between kernels is decided here from types, never from the version.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use btfparse::{Integer32Value, Readable, TypeInformation, TypeVariant};

use crate::Error;

/// Where the kernel shows its types.
pub const VMLINUX: &str = "/sys/kernel/btf/vmlinux";

/// Parsed type information.
pub struct KernelTypes {
    types: TypeInformation,
    path: PathBuf,
}

impl fmt::Debug for KernelTypes {
    /// Says where the types came from: there are a hundred thousand, and btfparse shows none.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("KernelTypes")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

struct Bytes(Vec<u8>);

impl Readable for Bytes {
    fn read(&self, offset: u64, buffer: &mut [u8]) -> btfparse::Result<()> {
        let bytes = usize::try_from(offset)
            .ok()
            .and_then(|start| self.0.get(start..start.checked_add(buffer.len())?))
            .ok_or_else(|| {
                btfparse::Error::new(
                    btfparse::ErrorKind::InvalidOffset,
                    "the data ends too early",
                )
            })?;
        buffer.copy_from_slice(bytes);
        Ok(())
    }
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
        let malformed = |reason: String| Error::MalformedBtf {
            path: path.to_owned(),
            reason,
        };
        if bytes.is_empty() {
            return Err(malformed("the file is empty".into()));
        }
        let types = TypeInformation::new(&Bytes(bytes))
            .map_err(|error| malformed(error.message().to_owned()))?;
        Ok(Self {
            types,
            path: path.to_owned(),
        })
    }

    /// The file these types came from.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn structure(&self, name: &str) -> Option<u32> {
        // The index by name mixes kinds; a function of the same name must not win.
        let id = self.types.id_of(name)?;
        if matches!(self.types.from_id(id), Some(TypeVariant::Struct(_))) {
            return Some(id);
        }
        self.types
            .get()
            .iter()
            .find_map(|(&id, variant)| match variant {
                TypeVariant::Struct(_) if self.types.name_of(id).as_deref() == Some(name) => {
                    Some(id)
                }
                _ => None,
            })
    }

    /// Byte offset of a member, through embedded structures; `None` where this kernel has none.
    #[must_use]
    pub fn offset_of(&self, structure: &str, member: &str) -> Option<u32> {
        let (_, offset) = self
            .types
            .offset_of(self.structure(structure)?, member)
            .ok()?;
        match offset {
            btfparse::Offset::ByteOffset(bytes) => Some(bytes),
            btfparse::Offset::BitOffsetAndSize(..) => None,
        }
    }

    /// Bytes of a member.
    #[must_use]
    pub fn size_of(&self, structure: &str, member: &str) -> Option<u32> {
        let (id, _) = self
            .types
            .offset_of(self.structure(structure)?, member)
            .ok()?;
        u32::try_from(self.types.size_of(id).ok()?).ok()
    }

    /// Whether the kernel has a function of this name.
    #[must_use]
    pub fn has_function(&self, name: &str) -> bool {
        self.types
            .id_of(name)
            .is_some_and(|id| matches!(self.types.from_id(id), Some(TypeVariant::Func(_))))
    }

    /// Whether the kernel has a tracepoint of this name to which BPF can attach.
    #[must_use]
    pub fn has_tracepoint(&self, name: &str) -> bool {
        self.types.id_of(&format!("btf_trace_{name}")).is_some()
    }

    /// Value of a constant of an enumeration.
    #[must_use]
    pub fn enum_value(&self, enumeration: &str, constant: &str) -> Option<u32> {
        let id = self.types.id_of(enumeration)?;
        let Some(TypeVariant::Enum(values)) = self.types.from_id(id) else {
            return None;
        };
        let value = values
            .named_value_list()
            .iter()
            .find(|value| value.name == constant)?
            .value;
        match value {
            Integer32Value::Signed(value) => u32::try_from(value).ok(),
            Integer32Value::Unsigned(value) => Some(value),
        }
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

//! Removes debug information from a BPF object, so that it is small and the same everywhere.
//!
//! Promises: `.debug*` sections and their relocations go; `.BTF`, `.BTF.ext`, their relocations and
//! everything the loader reads stay.

use object::build::Result;
use object::build::elf::{Builder, SectionData};
use object::elf::SHT_STRTAB;

/// The object without its DWARF sections.
pub(crate) fn without_debug_sections(object: &[u8]) -> Result<Vec<u8>> {
    let mut builder = Builder::read(object)?;
    for section in &mut builder.sections {
        let name = section.name.as_slice();
        let name = name
            .strip_prefix(b".rela")
            .or(name.strip_prefix(b".rel"))
            .unwrap_or(name);
        section.delete |= name.starts_with(b".debug");
    }
    name_sections_apart(&mut builder);
    let mut stripped = Vec::new();
    builder.write(&mut stripped)?;
    Ok(stripped)
}

/// Gives the section names a table of their own: LLVM keeps them in the symbols' one, which the
/// builder can read but not write.
fn name_sections_apart(builder: &mut Builder<'_>) {
    let has_table = |data: &SectionData<'_>| matches!(data, SectionData::SectionString);
    if builder
        .sections
        .iter()
        .any(|section| has_table(&section.data))
    {
        return;
    }
    let table = builder.sections.add();
    table.name = b".shstrtab"[..].into();
    table.sh_type = SHT_STRTAB;
    table.sh_addralign = 1;
    table.data = SectionData::SectionString;
}

//! The format of type information: a header, records one after the other, and their names.
//!
//! One pass over the records notes where each begins; everything else is read where it lies, when it is
//! asked for. The kernel has more than a hundred thousand types, of which a recording needs fifty: making
//! objects of all of them would take a third of the time until it begins.
//! The bytes are not trusted: whatever points outside of them is not there.

/// Kinds of types that are told apart, by their number in a record.
pub(super) mod kind {
    pub(in super::super) const INT: u8 = 1;
    pub(in super::super) const PTR: u8 = 2;
    pub(in super::super) const STRUCT: u8 = 4;
    pub(in super::super) const UNION: u8 = 5;
    pub(in super::super) const ENUM: u8 = 6;
    pub(in super::super) const TYPEDEF: u8 = 8;
    pub(in super::super) const VOLATILE: u8 = 9;
    pub(in super::super) const CONST: u8 = 10;
    pub(in super::super) const RESTRICT: u8 = 11;
    pub(in super::super) const FUNC: u8 = 12;
    pub(in super::super) const FLOAT: u8 = 16;
    pub(in super::super) const TYPE_TAG: u8 = 18;
    pub(in super::super) const ENUM64: u8 = 19;
}

const MAGIC: u16 = 0xeb9f;
/// Name, information, and size or type.
const RECORD_BYTES: usize = 12;
/// Members of structures within structures are looked through to this depth.
const MAX_DEPTH: u32 = 16;

/// Type information, and where each record of it begins.
#[derive(Debug)]
pub(super) struct Reader {
    bytes: Vec<u8>,
    strings_at: usize,
    /// Of each type, the first of which has id 1: where its record begins.
    starts: Vec<u32>,
    /// Its kind.
    kinds: Vec<u8>,
}

/// A member of a structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Member {
    /// Its type.
    pub(super) type_id: u32,
    /// From the beginning of the structure.
    pub(super) offset_bits: u32,
    /// Whether it is a field of bits, which has no address.
    pub(super) is_bits: bool,
}

impl Reader {
    /// Finds the beginnings of all records; in words, what is wrong with the bytes.
    pub(super) fn new(bytes: Vec<u8>) -> Result<Self, &'static str> {
        const SHORT: &str = "the data ends too early";
        let field = |at| word(&bytes, at).map(|word| word as usize).ok_or(SHORT);
        if field(0)? & 0xffff != usize::from(MAGIC) {
            return Err("it does not begin like type information");
        }
        let [header_bytes, types_at, types_bytes, strings_at] =
            [field(4)?, field(8)?, field(12)?, field(16)?];
        let mut at = header_bytes + types_at;
        let end = at + types_bytes;
        if end > bytes.len() {
            return Err(SHORT);
        }
        let (mut starts, mut kinds) = (Vec::new(), Vec::new());
        while at < end {
            let info = word(&bytes, at + 4).ok_or(SHORT)?;
            starts.push(u32::try_from(at).map_err(|_error| "it is larger than 4 GiB")?);
            kinds.push(kind_of(info));
            at += RECORD_BYTES + trailer_bytes(info).ok_or("a type is of an unknown kind")?;
        }
        Ok(Self {
            strings_at: header_bytes + strings_at,
            bytes,
            starts,
            kinds,
        })
    }

    /// The first type of this kind and name.
    pub(super) fn find(&self, kind: u8, name: &str) -> Option<u32> {
        let ids = (1..).zip(&self.kinds).filter(|(_, other)| **other == kind);
        let mut found = ids.map(|(id, _)| id);
        found.find(|&id| self.record(id).is_some_and(|at| self.is_named(at, name)))
    }

    /// The member of this name, also where it lies in members that have none.
    pub(super) fn member(&self, structure: u32, name: &str) -> Option<Member> {
        self.member_within(structure, name, MAX_DEPTH)
    }

    fn member_within(&self, structure: u32, name: &str, depth: u32) -> Option<Member> {
        let id = self.without_modifiers(structure)?;
        if !matches!(self.kind(id)?, kind::STRUCT | kind::UNION) {
            return None;
        }
        let record = self.record(id)?;
        let info = word(&self.bytes, record + 4)?;
        let has_bit_sizes = info >> 31 != 0;
        (0..n_members(info)).find_map(|index| {
            let at = record + RECORD_BYTES + index * 12;
            let (type_id, place) = (word(&self.bytes, at + 4)?, word(&self.bytes, at + 8)?);
            let (offset_bits, is_bits) = if has_bit_sizes {
                (place & 0x00ff_ffff, place >> 24 != 0)
            } else {
                (place, false)
            };
            if self.is_named(at, name) {
                return Some(Member {
                    type_id,
                    offset_bits,
                    is_bits,
                });
            }
            if !self.is_named(at, "") {
                return None;
            }
            let inner = self.member_within(type_id, name, depth.checked_sub(1)?)?;
            Some(Member {
                offset_bits: offset_bits.checked_add(inner.offset_bits)?,
                ..inner
            })
        })
    }

    /// Value of a constant of an enumeration of 32 bits.
    pub(super) fn constant(&self, enumeration: u32, name: &str) -> Option<u32> {
        let record = self.record(enumeration)?;
        let info = word(&self.bytes, record + 4)?;
        let mut places = (0..n_members(info)).map(|index| record + RECORD_BYTES + index * 8);
        let at = places.find(|&at| self.is_named(at, name))?;
        word(&self.bytes, at + 4)
    }

    /// Bytes of a type; of functions and arrays it is not known.
    pub(super) fn size(&self, id: u32) -> Option<u32> {
        let id = self.without_modifiers(id)?;
        match self.kind(id)? {
            kind::INT | kind::STRUCT | kind::UNION | kind::ENUM | kind::ENUM64 | kind::FLOAT => {
                word(&self.bytes, self.record(id)? + 8)
            }
            kind::PTR => u32::try_from(size_of::<usize>()).ok(),
            _ => None,
        }
    }

    /// The type itself, behind its other names and what is said of its use.
    fn without_modifiers(&self, mut id: u32) -> Option<u32> {
        for _ in 0..MAX_DEPTH {
            match self.kind(id)? {
                kind::TYPEDEF | kind::VOLATILE | kind::CONST | kind::RESTRICT | kind::TYPE_TAG => {
                    id = word(&self.bytes, self.record(id)? + 8)?;
                }
                _ => return Some(id),
            }
        }
        None
    }

    fn kind(&self, id: u32) -> Option<u8> {
        self.kinds.get(index_of(id)?).copied()
    }

    fn record(&self, id: u32) -> Option<usize> {
        self.starts.get(index_of(id)?).map(|start| *start as usize)
    }

    /// Whether the name that the word at `at` points to is this one.
    fn is_named(&self, at: usize, name: &str) -> bool {
        let begin = word(&self.bytes, at).map(|offset| self.strings_at + offset as usize);
        let rest = begin.and_then(|begin| self.bytes.get(begin..));
        let rest = rest.and_then(|rest| rest.strip_prefix(name.as_bytes()));
        rest.and_then(<[u8]>::first) == Some(&0)
    }
}

/// Id 0 stands for `void`, which has no record.
fn index_of(id: u32) -> Option<usize> {
    id.checked_sub(1).map(|index| index as usize)
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let word = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_ne_bytes(word.try_into().ok()?))
}

fn kind_of(info: u32) -> u8 {
    u8::try_from(info >> 24 & 0x1f).unwrap_or(0)
}

fn n_members(info: u32) -> usize {
    (info & 0xffff) as usize
}

/// Bytes that follow a record; none for a kind that is not known.
fn trailer_bytes(info: u32) -> Option<usize> {
    let n = n_members(info);
    Some(match kind_of(info) {
        kind::PTR | 7..=12 | kind::FLOAT | kind::TYPE_TAG => 0,
        // An integer's encoding, a variable's linkage, which part a tag is of.
        kind::INT | 14 | 17 => 4,
        // An array.
        3 => 12,
        kind::STRUCT | kind::UNION | 15 | kind::ENUM64 => n * 12,
        kind::ENUM | 13 => n * 8,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes type information, word by word.
    #[derive(Default)]
    struct Writer {
        types: Vec<u32>,
        strings: Vec<u8>,
    }

    impl Writer {
        fn name(&mut self, name: &str) -> u32 {
            let at = u32::try_from(self.strings.len()).unwrap();
            self.strings.extend(name.as_bytes());
            self.strings.push(0);
            at
        }

        fn add(&mut self, kind: u8, name: &str, info: u32, rest: &[u32]) {
            let name = self.name(name);
            self.types.extend([name, u32::from(kind) << 24 | info]);
            self.types.extend(rest);
        }

        fn bytes(&self) -> Vec<u8> {
            let types_bytes = u32::try_from(self.types.len() * 4).unwrap();
            let strings_bytes = u32::try_from(self.strings.len()).unwrap();
            let header = [
                u32::from(MAGIC),
                24,
                0,
                types_bytes,
                types_bytes,
                strings_bytes,
            ];
            let words = header.iter().chain(&self.types);
            let mut bytes: Vec<u8> = words.flat_map(|word| word.to_ne_bytes()).collect();
            bytes.extend(&self.strings);
            bytes
        }
    }

    /// `struct task { u32 pid; struct { u32 a:3; volatile word_t b; }; enum state state; }`, beside a
    /// function called `task`.
    fn sample() -> Writer {
        let mut writer = Writer::default();
        let [nothing, pid, a, b, state, on, off] =
            ["", "pid", "a", "b", "state", "ON", "OFF"].map(|name| writer.name(name));
        writer.add(kind::FUNC, "task", 0, &[0]);
        writer.add(kind::INT, "unsigned int", 0, &[4, 32]);
        writer.add(kind::TYPEDEF, "word_t", 0, &[2]);
        writer.add(kind::VOLATILE, "", 0, &[3]);
        writer.add(kind::STRUCT, "", 1 << 31 | 2, &[8, a, 2, 3 << 24, b, 4, 32]);
        writer.add(kind::ENUM, "state", 2, &[4, off, 0, on, 7]);
        writer.add(
            kind::STRUCT,
            "task",
            3,
            &[16, pid, 2, 0, nothing, 5, 32, state, 6, 96],
        );
        writer
    }

    fn reader() -> Reader {
        Reader::new(sample().bytes()).unwrap()
    }

    fn check(name: &str, expected: Option<(u32, bool)>) {
        let reader = reader();
        let task = reader.find(kind::STRUCT, "task").unwrap();
        let member = reader.member(task, name);
        let place = member.map(|member| (member.offset_bits, member.is_bits));
        assert_eq!(place, expected, "{name}");
    }

    #[test]
    fn kind_and_name_make_a_type() {
        let reader = reader();
        assert_eq!(reader.find(kind::FUNC, "task"), Some(1));
        assert_eq!(reader.find(kind::STRUCT, "task"), Some(7));
        assert_eq!(reader.find(kind::STRUCT, "tas"), None);
        assert_eq!(reader.find(kind::ENUM, "task"), None);
    }

    #[test]
    fn members_are_found_through_members_without_a_name() {
        check("pid", Some((0, false)));
        check("b", Some((64, false)));
        check("state", Some((96, false)));
        check("c", None);
    }

    #[test]
    fn fields_of_bits_are_told_apart() {
        check("a", Some((32, true)));
    }

    #[test]
    fn sizes_and_constants_are_read_behind_other_names() {
        let reader = reader();
        assert_eq!(reader.size(4), Some(4));
        assert_eq!(reader.size(7), Some(16));
        assert_eq!(reader.size(1), None);
        assert_eq!(reader.constant(6, "ON"), Some(7));
        assert_eq!(reader.constant(6, "pid"), None);
    }

    #[test]
    fn type_that_names_itself_has_no_end_and_no_size() {
        let mut writer = Writer::default();
        writer.add(kind::TYPEDEF, "loop", 0, &[1]);
        assert_eq!(Reader::new(writer.bytes()).unwrap().size(1), None);
    }

    #[test]
    fn bytes_cut_anywhere_are_refused_or_answer_nothing() {
        let whole = sample().bytes();
        for n in 0..whole.len() {
            if let Ok(reader) = Reader::new(whole[..n].to_vec()) {
                // The records are whole, and what was cut are names, of which the last is `task`.
                assert_eq!(reader.find(kind::STRUCT, "task"), None, "{n} bytes");
            }
        }
    }

    #[test]
    fn unknown_kind_is_refused() {
        let mut writer = Writer::default();
        writer.add(20, "new", 0, &[0]);
        assert_eq!(
            Reader::new(writer.bytes()).err(),
            Some("a type is of an unknown kind")
        );
    }
}

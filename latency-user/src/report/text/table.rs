//! Columns of text: widths by `comfy-table`, which knows how wide a character is.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

/// Spaces between columns.
const GAP: u16 = 2;

/// Lines of `rows` in columns: `alignments` has `<` for a left-aligned column, `>` for a right one.
pub(in crate::report) fn aligned(alignments: &str, rows: &[Vec<String>]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.add_rows(rows);
    for (column, alignment) in table.column_iter_mut().zip(alignments.chars()) {
        column.set_padding((0, GAP));
        column.set_cell_alignment(match alignment {
            '>' => CellAlignment::Right,
            _ => CellAlignment::Left,
        });
    }
    table.trim_fmt() + "\n"
}

/// A row of a table.
pub(in crate::report) fn cells<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(str::to_owned).to_vec()
}

/// A cell of what may not be known: then it is a dash.
pub(in crate::report) fn known<T>(value: Option<T>, shown: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| "–".to_owned(), shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_whatever_their_characters() {
        let rows = [
            cells(["name", "wait", "note"]),
            cells(["größe 名前", "4.10 µs", ""]),
        ];
        insta::assert_snapshot!(aligned("<><", &rows), @r"
        name           wait  note
        größe 名前  4.10 µs
        ");
    }

    #[test]
    fn indentation_of_a_cell_stays() {
        let rows = [
            cells(["after losing the CPU", "7"]),
            cells(["  to the tick", "5"]),
        ];
        insta::assert_snapshot!(aligned("<>", &rows), @r"
        after losing the CPU  7
          to the tick         5
        ");
    }
}

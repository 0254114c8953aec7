//! A recording as an animated SVG: each piece of text is hidden until its time.
//!
//! The animation only hides. Without animations, for readers who want less motion and in programs
//! that know none, the picture is its last frame.

use super::COLUMNS;
use crate::recording::terminal::{Cell, Style};

const COLUMN_PX: usize = 9;
const ROW_PX: usize = 22;
const MARGIN_PX: usize = 24;
/// Height of the title bar.
const TITLE_PX: usize = 40;
const WIDTH_PX: usize = COLUMNS as usize * COLUMN_PX + 2 * MARGIN_PX;

const STYLE: &str = "\
text{fill:#e6eaf0;white-space:pre}
.dim,.title{fill:#929cab}
.bold{font-weight:600}
.red{fill:#ff95a1}
.green{fill:#7fd29a}
.yellow{fill:#e2bd62}
.typed{fill:#a5b0ff}
@keyframes hidden{from,to{opacity:0}}
@media (prefers-reduced-motion:no-preference){[style]{animation-name:hidden}}";

/// Texts of a recording beside its rows.
pub struct Caption {
    /// The recorded command, shown in the title bar.
    pub command: &'static str,
    /// Summary for readers who do not see the picture.
    pub description: &'static str,
}

/// Returns the file.
pub fn svg(caption: &Caption, rows: &[Vec<Cell>]) -> String {
    let Caption {
        command,
        description,
    } = caption;
    let used = rows.iter().rposition(|row| !row.is_empty());
    let rows = &rows[..used.map_or(0, |it| it + 1)];
    let height = TITLE_PX + rows.len() * ROW_PX + MARGIN_PX;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH_PX} {height}\" \
         role=\"img\" aria-labelledby=\"t d\" xml:space=\"preserve\" font-size=\"15\" \
         font-family=\"ui-monospace,SFMono-Regular,Menlo,Consolas,Liberation Mono,monospace\">\n\
         <title id=\"t\">{command} in a terminal</title>\n\
         <desc id=\"d\">{description}</desc>\n\
         <style>\n{STYLE}\n</style>\n\
         <rect x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"14\" fill=\"#0e1116\" \
         stroke=\"#39424f\"/>\n\
         <text class=\"title\" x=\"{}\" y=\"27\" font-size=\"13\" text-anchor=\"middle\">\
         {command}</text>\n",
        WIDTH_PX - 1,
        height - 1,
        WIDTH_PX / 2,
    );
    for (number, row) in rows.iter().enumerate() {
        let y = TITLE_PX + (number + 1) * ROW_PX - 6;
        for piece in pieces(row) {
            svg.push_str(&piece.element(y));
        }
    }
    svg.push_str("</svg>\n");
    svg
}

/// Letters of a row beside each other with one style, which appear at the same time.
struct Piece {
    column: usize,
    text: String,
    style: Style,
    shown_at_ms: u64,
}

fn pieces(row: &[Cell]) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    for (column, cell) in row.iter().enumerate() {
        match pieces.last_mut() {
            Some(it) if (it.style, it.shown_at_ms) == (cell.style, cell.shown_at_ms) => {
                it.text.push(cell.letter);
            }
            _ => pieces.push(Piece {
                column,
                text: cell.letter.to_string(),
                style: cell.style,
                shown_at_ms: cell.shown_at_ms,
            }),
        }
    }
    pieces.retain(|it| !it.text.trim().is_empty());
    pieces
}

impl Piece {
    fn element(&self, y: usize) -> String {
        let spaces = self.text.len() - self.text.trim_start().len();
        let text = self.text.trim();
        let x = MARGIN_PX + (self.column + spaces) * COLUMN_PX;
        // The length keeps columns aligned in every font.
        let length = text.chars().count() * COLUMN_PX;
        let class = match self.style {
            Style::Plain => "",
            Style::Dim => " class=\"dim\"",
            Style::Bold => " class=\"bold\"",
            Style::Green => " class=\"green\"",
            Style::Red => " class=\"red\"",
            Style::Yellow => " class=\"yellow\"",
            Style::Typed => " class=\"typed\"",
        };
        let style = match self.shown_at_ms {
            0 => String::new(),
            time => format!(" style=\"animation-duration:{time}ms\""),
        };
        let text = escaped(text);
        format!("<text x=\"{x}\" y=\"{y}\" textLength=\"{length}\"{class}{style}>{text}</text>\n")
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cells: &[(&str, Style, u64)]) -> Vec<Cell> {
        let cells = cells.iter().flat_map(|(text, style, time)| {
            text.chars().map(move |letter| Cell {
                letter,
                style: *style,
                shown_at_ms: *time,
            })
        });
        cells.collect()
    }

    const CAPTION: Caption = Caption {
        command: "ls",
        description: "A list of files.",
    };

    fn elements(row: &[Cell]) -> Vec<String> {
        pieces(row).iter().map(|it| it.element(10)).collect()
    }

    #[test]
    fn letters_of_one_style_and_time_are_one_element() {
        let row = row(&[
            ("$ ", Style::Dim, 0),
            ("l", Style::Typed, 45),
            ("s", Style::Typed, 90),
            ("   ", Style::Plain, 90),
            ("  a  <&>", Style::Bold, 90),
        ]);
        assert_eq!(
            elements(&row),
            [
                "<text x=\"24\" y=\"10\" textLength=\"9\" class=\"dim\">$</text>\n",
                "<text x=\"42\" y=\"10\" textLength=\"9\" class=\"typed\" \
                 style=\"animation-duration:45ms\">l</text>\n",
                "<text x=\"51\" y=\"10\" textLength=\"9\" class=\"typed\" \
                 style=\"animation-duration:90ms\">s</text>\n",
                "<text x=\"105\" y=\"10\" textLength=\"54\" class=\"bold\" \
                 style=\"animation-duration:90ms\">a  &lt;&amp;&gt;</text>\n",
            ]
        );
    }

    #[test]
    fn picture_is_as_high_as_its_rows() {
        let svg = svg(&CAPTION, &[row(&[("one", Style::Plain, 0)]), Vec::new()]);
        assert!(svg.contains("viewBox=\"0 0 768 86\""), "{svg}");
        assert!(svg.contains(">one</text>\n</svg>\n"), "{svg}");
    }

    #[test]
    fn text_is_hidden_only_while_animations_are_on() {
        let svg = svg(&CAPTION, &[row(&[("one", Style::Plain, 45)])]);
        let (always, with_motion) = svg
            .split_once("@media (prefers-reduced-motion:no-preference)")
            .expect("a rule");
        assert!(!always.contains("animation-name"), "{svg}");
        assert!(with_motion.starts_with("{[style]{animation-name:hidden}}"));
        assert!(!svg.contains("<script"), "{svg}");
    }
}

//! Styled lines. Meaning never hangs on a colour alone: there is always a mark or a word beside it.

use crossterm::style::{Attribute, Color, ContentStyle, PrintStyledContent, StyledContent};
use crossterm::{Command, QueueableCommand};

use super::text;

/// How a piece of text looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Style {
    /// As the terminal has it.
    #[default]
    Plain,
    /// What a line is about.
    Strong,
    /// What stands back.
    Dim,
    /// Where the cursor is, or what is chosen.
    Accent,
    /// What needs a look: little time left, no connection, a refusal.
    Warn,
}

impl Style {
    fn content(self, colours: bool) -> ContentStyle {
        let mut style = ContentStyle::new();
        let colour = match self {
            Self::Plain => None,
            Self::Strong => {
                style.attributes.set(Attribute::Bold);
                None
            }
            Self::Dim => {
                style.attributes.set(Attribute::Dim);
                None
            }
            Self::Accent => {
                style.attributes.set(Attribute::Bold);
                Some(Color::Cyan)
            }
            Self::Warn => {
                style.attributes.set(Attribute::Bold);
                Some(Color::Yellow)
            }
        };
        style.foreground_color = colour.filter(|_| colours);
        style
    }
}

/// One line of a screen: pieces of text, each with its style. The text is fit for a terminal already.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Line(Vec<(Style, String)>);

impl Line {
    /// An empty line.
    pub fn new() -> Self {
        Self::default()
    }

    /// A line in one style.
    pub fn styled(style: Style, text: impl Into<String>) -> Self {
        Self::new().and(style, text)
    }

    /// This line with more text at its end.
    #[must_use]
    pub fn and(mut self, style: Style, text: impl Into<String>) -> Self {
        self.0.push((style, text.into()));
        self
    }

    /// This line with text at the right edge of `width` columns; the left part is cut where the two would meet.
    #[must_use]
    pub fn and_right(self, style: Style, right: &str, width: usize) -> Self {
        let right = text::cut(right, width);
        let room = width.saturating_sub(text::width(&right));
        let left = self.cut(room.saturating_sub(usize::from(!right.is_empty())));
        let gap = room.saturating_sub(left.width());
        left.and(Style::Plain, " ".repeat(gap)).and(style, right)
    }

    /// The beginning of this line, in at most `width` columns.
    #[must_use]
    pub fn cut(self, width: usize) -> Self {
        let mut room = width;
        let mut line = Self::new();
        for (style, piece) in self.0 {
            let fits = text::width(&piece) <= room;
            let piece = text::cut(&piece, room);
            room -= text::width(&piece).min(room);
            line.0.push((style, piece));
            if !fits {
                break;
            }
        }
        line
    }

    /// The columns that the line takes.
    pub fn width(&self) -> usize {
        self.0.iter().map(|(_, piece)| text::width(piece)).sum()
    }

    /// The text alone.
    pub fn text(&self) -> String {
        self.0.iter().map(|(_, piece)| piece.as_str()).collect()
    }

    /// Writes the line where the cursor stands.
    ///
    /// # Errors
    /// What the terminal says.
    pub fn queue(&self, out: &mut impl QueueableCommand, colours: bool) -> std::io::Result<()> {
        for (style, piece) in &self.0 {
            out.queue(styled(*style, piece, colours))?;
        }
        Ok(())
    }
}

fn styled(style: Style, piece: &str, colours: bool) -> impl Command {
    PrintStyledContent(StyledContent::new(style.content(colours), piece.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_at_the_right_edge_wins_over_the_left() {
        let line = Line::styled(Style::Strong, "Mailbot asks").and_right(Style::Dim, "59m 12s left", 30);
        assert_eq!(line.text(), "Mailbot asks      59m 12s left");
        let narrow = Line::styled(Style::Strong, "Mailbot asks").and_right(Style::Dim, "59m 12s left", 20);
        assert_eq!(narrow.text(), "Mailbot 59m 12s left".replace("Mailbot", "Mailbo…"));
        assert_eq!(Line::styled(Style::Plain, "all").and_right(Style::Dim, "", 3).text(), "all");
    }

    #[test]
    fn a_cut_line_keeps_its_styles() {
        let line = Line::styled(Style::Strong, "one ").and(Style::Dim, "two ").and(Style::Plain, "three").cut(7);
        assert_eq!(line.text(), "one tw…");
        assert_eq!(line.width(), 7);
    }

    #[test]
    fn no_colour_is_written_where_none_is_wanted() {
        let mut written = Vec::new();
        assert!(Line::styled(Style::Warn, "late").queue(&mut written, false).is_ok());
        let written = String::from_utf8_lossy(&written).into_owned();
        assert!(written.contains("late") && !written.contains("[38") && !written.contains("[33"), "{written:?}");
    }
}

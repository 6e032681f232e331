//! A small text field: several lines, a cursor between characters as people see them.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use unicode_segmentation::UnicodeSegmentation;

use super::text;

/// The field.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Editor {
    text: String,
    /// A byte index into `text`, at the border of two grapheme clusters.
    cursor: usize,
}

impl Editor {
    /// What has been typed.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Puts text in at the cursor. Line ends become line feeds; controls, which no answer may hold, are left out.
    pub fn insert(&mut self, typed: &str) {
        let typed: String = typed
            .replace("\r\n", "\n")
            .replace('\r', "\n")
            .chars()
            .filter(|&c| !chips_protocol::text::is_forbidden_control(c))
            .collect();
        self.text.insert_str(self.cursor, &typed);
        self.cursor += typed.len();
        // A combining character joins what stands before it; the cursor stays between clusters.
        let border = self.borders().find(|&border| border >= self.cursor);
        self.cursor = border.unwrap_or(self.text.len());
    }

    /// Acts on a key that edits or moves; says whether it was one.
    pub fn key(&mut self, key: KeyEvent) -> bool {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        match key.code {
            KeyCode::Char('a') if control => self.cursor = self.line_start(),
            KeyCode::Char('e') if control => self.cursor = self.line_end(),
            KeyCode::Char('u') if control => self.remove(self.line_start(), self.cursor),
            KeyCode::Char('k') if control => self.remove(self.cursor, self.line_end()),
            KeyCode::Char('w') if control => self.remove(self.word_start(), self.cursor),
            KeyCode::Char('j') if control => self.insert("\n"),
            KeyCode::Enter if alt => self.insert("\n"),
            KeyCode::Char(c) if !control && !alt => self.insert(c.encode_utf8(&mut [0; 4])),
            KeyCode::Backspace => self.remove(self.before(), self.cursor),
            KeyCode::Delete => self.remove(self.cursor, self.after()),
            KeyCode::Left => self.cursor = self.before(),
            KeyCode::Right => self.cursor = self.after(),
            KeyCode::Home => self.cursor = self.line_start(),
            KeyCode::End => self.cursor = self.line_end(),
            _ => return false,
        }
        true
    }

    fn remove(&mut self, from: usize, to: usize) {
        self.text.replace_range(from..to, "");
        self.cursor = from;
    }

    /// Where the cursor may stand.
    fn borders(&self) -> impl DoubleEndedIterator<Item = usize> + '_ {
        self.text.grapheme_indices(true).map(|(at, _)| at).chain([self.text.len()])
    }

    fn before(&self) -> usize {
        self.borders().rev().find(|&border| border < self.cursor).unwrap_or(0)
    }

    fn after(&self) -> usize {
        self.borders().find(|&border| border > self.cursor).unwrap_or(self.text.len())
    }

    fn line_start(&self) -> usize {
        self.text[..self.cursor].rfind('\n').map_or(0, |at| at + 1)
    }

    fn line_end(&self) -> usize {
        self.text[self.cursor..].find('\n').map_or(self.text.len(), |at| self.cursor + at)
    }

    fn word_start(&self) -> usize {
        let before = self.text[..self.cursor].trim_end();
        before.rfind(char::is_whitespace).map_or(0, |at| at + before[at..].chars().next().map_or(1, char::len_utf8))
    }

    /// The text in lines of at most `width` columns, and the cursor's line and column in them.
    pub fn lines(&self, width: usize) -> (Vec<String>, (usize, usize)) {
        let width = width.max(2);
        let mut lines = vec![String::new()];
        let mut column = 0;
        let mut cursor = (0, 0);
        for (at, cluster) in self.text.grapheme_indices(true) {
            let shown = if cluster == "\n" { String::new() } else { text::clean(cluster).replace('\n', " ") };
            let takes = text::width(&shown);
            if column > 0 && column + takes > width {
                lines.push(String::new());
                column = 0;
            }
            if at == self.cursor {
                cursor = (lines.len() - 1, column);
            }
            if cluster == "\n" {
                lines.push(String::new());
                column = 0;
            } else if let Some(line) = lines.last_mut() {
                line.push_str(&shown);
                column += takes;
            }
        }
        if self.cursor == self.text.len() {
            if column >= width {
                lines.push(String::new());
                column = 0;
            }
            cursor = (lines.len() - 1, column);
        }
        (lines, cursor)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn press(editor: &mut Editor, codes: &[KeyCode]) {
        for &code in codes {
            editor.key(KeyEvent::new(code, KeyModifiers::NONE));
        }
    }

    fn control(editor: &mut Editor, letter: char) {
        editor.key(KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL));
    }

    #[test]
    fn it_edits_as_a_text_field_does() {
        let mut editor = Editor::default();
        editor.insert("3 dais");
        press(&mut editor, &[KeyCode::Left, KeyCode::Backspace, KeyCode::Char('y')]);
        assert_eq!(editor.text(), "3 days");
        control(&mut editor, 'a');
        press(&mut editor, &[KeyCode::Delete, KeyCode::Char('4')]);
        assert_eq!(editor.text(), "4 days");
        control(&mut editor, 'k');
        assert_eq!(editor.text(), "4");
        editor.insert(" more days ");
        control(&mut editor, 'w');
        assert_eq!(editor.text(), "4 more ");
        control(&mut editor, 'u');
        assert_eq!(editor.text(), "");
    }

    #[test]
    fn what_people_see_as_one_character_goes_as_one() {
        let mut editor = Editor::default();
        editor.insert("e\u{301}👩‍👩‍👧‍👦x");
        press(&mut editor, &[KeyCode::Left, KeyCode::Backspace]);
        assert_eq!(editor.text(), "e\u{301}x");
        press(&mut editor, &[KeyCode::Backspace]);
        assert_eq!(editor.text(), "x");
    }

    #[test]
    fn pasted_line_ends_stay_and_controls_go() {
        let mut editor = Editor::default();
        editor.insert("one\r\ntwo\rthree\u{1b}[31m\u{0}");
        assert_eq!(editor.text(), "one\ntwo\nthree[31m");
        assert_eq!(editor.lines(80), (vec!["one".into(), "two".into(), "three[31m".into()], (2, 9)));
    }

    #[test]
    fn a_long_line_goes_on_below() {
        let mut editor = Editor::default();
        editor.insert("abcdefgh");
        assert_eq!(editor.lines(4), (vec!["abcd".into(), "efgh".into(), String::new()], (2, 0)));
        press(&mut editor, &[KeyCode::Home]);
        assert_eq!(editor.lines(4).1, (0, 0));
    }

    proptest! {
        #[test]
        fn no_keys_break_it(typed in proptest::collection::vec((any::<String>(), 0_usize..12), 0..20), width in 1_usize..40) {
            let mut editor = Editor::default();
            for (text, key) in typed {
                editor.insert(&text);
                let keys = [
                    KeyCode::Backspace, KeyCode::Delete, KeyCode::Left, KeyCode::Right, KeyCode::Home, KeyCode::End,
                ];
                match keys.get(key) {
                    Some(&code) => press(&mut editor, &[code]),
                    None => control(&mut editor, ['a', 'e', 'u', 'k', 'w', 'j'][key - 6]),
                }
                let (lines, (row, column)) = editor.lines(width);
                prop_assert!(row < lines.len() && column <= width.max(2) + 1);
                prop_assert!(editor.text().is_char_boundary(editor.cursor));
            }
        }
    }
}

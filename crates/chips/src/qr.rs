//! A QR code on the terminal, so that a phone can take up a link.

use qrcode::types::Color;
use qrcode::{EcLevel, QrCode};

/// Light modules around the code that scanners need (ISO/IEC 18004 asks for four).
const QUIET: usize = 4;

/// A text as a QR code of half blocks, two modules a character; nothing where it needs more columns than there are.
///
/// The colours are fixed ones of the 256-colour cube, black on white: a scanner wants dark on light, whatever the
/// terminal's theme makes of its own black and white.
pub fn code(text: &str, columns: usize) -> Option<String> {
    let code = QrCode::with_error_correction_level(text, EcLevel::L).ok()?;
    let width = code.width();
    let outer = width + 2 * QUIET;
    if outer > columns {
        return None;
    }
    let modules = code.to_colors();
    let dark = |x: usize, y: usize| {
        let inside = (QUIET..QUIET + width).contains(&x) && (QUIET..QUIET + width).contains(&y);
        inside && modules[(y - QUIET) * width + (x - QUIET)] == Color::Dark
    };
    let mut picture = String::new();
    for y in (0..outer).step_by(2) {
        picture.push_str("\u{1b}[38;5;16;48;5;231m");
        picture.extend((0..outer).map(|x| match (dark(x, y), dark(x, y + 1)) {
            (false, false) => ' ',
            (true, false) => '▀',
            (false, true) => '▄',
            (true, true) => '█',
        }));
        picture.push_str("\u{1b}[0m\n");
    }
    Some(picture)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// Turns the picture back into modules.
    fn modules(picture: &str) -> Vec<Vec<bool>> {
        let mut rows = Vec::new();
        for line in picture.lines() {
            let line = line.strip_prefix("\u{1b}[38;5;16;48;5;231m").unwrap().strip_suffix("\u{1b}[0m").unwrap();
            rows.push(line.chars().map(|c| matches!(c, '▀' | '█')).collect());
            rows.push(line.chars().map(|c| matches!(c, '▄' | '█')).collect());
        }
        rows
    }

    #[test]
    fn the_picture_is_the_code_with_its_quiet_zone() {
        let link = "https://chips.example.com/sign-in/abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG";
        let rows = modules(&code(link, 80).unwrap());
        let expected = QrCode::with_error_correction_level(link, EcLevel::L).unwrap();
        let width = expected.width();
        assert!(rows.len() >= width + 2 * QUIET);
        assert!(rows.iter().all(|row| row.len() == width + 2 * QUIET));
        for (y, row) in rows.iter().enumerate() {
            for (x, &dark) in row.iter().enumerate() {
                let inside = (QUIET..QUIET + width).contains(&x) && (QUIET..QUIET + width).contains(&y);
                let wanted = inside && expected[(x - QUIET, y - QUIET)] == Color::Dark;
                assert_eq!(dark, wanted, "module {x}, {y}");
            }
        }
    }

    #[test]
    fn a_narrow_terminal_gets_no_broken_code() {
        let link = "https://chips.example.com/sign-in/abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG";
        let needed = code(link, 1000).unwrap().lines().next().unwrap().chars().filter(|c| " ▀▄█".contains(*c)).count();
        assert!(code(link, needed).is_some());
        assert!(code(link, needed - 1).is_none());
    }
}

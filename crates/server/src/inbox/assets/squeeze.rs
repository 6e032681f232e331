//! What is in the styles and the script only for those who read their source, and is not served: comments, indentation, line ends,
//! spaces beside punctuation, `const` where `let` does the same, `true`, `false` and `Infinity`, the zeros of thousands, brackets around the one parameter of a function. Names stay, so what
//! a browser shows is the source still.

use std::iter::Peekable;
use std::str::Chars;

/// Styles without what only readers need. What stands between quotes in them has neither comments nor spaces beside punctuation.
pub(crate) fn styles(source: &str) -> String {
    let mut rest = source;
    let mut bare = String::with_capacity(source.len());
    while let Some((before, comment)) = rest.split_once("/*") {
        bare.push_str(before);
        rest = comment.split_once("*/").map_or("", |(_, after)| after);
    }
    bare.push_str(rest);
    let folded = bare.split_whitespace().collect::<Vec<_>>().join(" ");
    // A space before a colon stands for "within", one beside a plus belongs to `calc()`.
    let pairs = [
        ("; ", ";"),
        (": ", ":"),
        (", ", ","),
        (" {", "{"),
        ("{ ", "{"),
        (" }", "}"),
        ("} ", "}"),
        (";}", "}"),
        (" > ", ">"),
        (" ~ ", "~"),
    ];
    pairs.iter().fold(folded, |text, (from, to)| text.replace(from, to))
}

/// A script without what only readers need. Strings, templates and regular expressions stay as they are.
///
/// Line ends stay where one might end a statement: the source is written with semicolons, but behind a `}` only its author knows.
pub(crate) fn script(source: &str) -> String {
    let mut out = Script { text: String::with_capacity(source.len()), templates: Vec::new(), gap: Gap::None };
    let mut rest = source.chars().peekable();
    while let Some(c) = rest.next() {
        match (c, rest.peek()) {
            ('/', Some('/')) => while rest.next_if(|&c| c != '\n').is_some() {},
            ('/', Some('*')) => comment(&mut rest),
            ('/', _) if out.expects_value() => {
                out.code(c);
                out.regular_expression(&mut rest);
            }
            ('"' | '\'', _) => {
                out.code(c);
                out.string(c, &mut rest);
            }
            ('`', _) => {
                out.code(c);
                out.template(&mut rest);
            }
            ('}', _) if out.templates.last() == Some(&0) => {
                out.templates.pop();
                out.code(c);
                out.template(&mut rest);
            }
            ('\n', _) => out.gap = Gap::Line,
            (c, _) if c.is_whitespace() => out.gap = out.gap.max(Gap::Space),
            (c, _) => {
                if let Some(braces) = out.templates.last_mut() {
                    match c {
                        '{' => *braces += 1,
                        '}' => *braces -= 1,
                        _ => {}
                    }
                }
                out.code(c);
            }
        }
    }
    out.text
}

/// What stands between two pieces of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Gap {
    None,
    Space,
    Line,
}

struct Script {
    text: String,
    /// For each template that the place is within, how many braces are open in its `${…}`.
    templates: Vec<usize>,
    gap: Gap,
}

impl Script {
    /// A character of code, behind as much of the gap before it as is needed.
    fn code(&mut self, c: char) {
        if !is_word(c) || self.gap != Gap::None {
            self.end_word();
        }
        let before = self.text.chars().next_back().unwrap_or(';');
        match std::mem::replace(&mut self.gap, Gap::None) {
            Gap::Line if !("{}([,;=>?:&|".contains(before) && before != '}' || "})].?:&|".contains(c)) => {
                self.text.push('\n');
            }
            Gap::Space if is_word(before) && is_word(c) || "+-".contains(c) && before == c => self.text.push(' '),
            _ => {}
        }
        // A `}` ends a statement as well as a semicolon does.
        if c == '}' && before == ';' {
            self.text.pop();
        }
        self.text.push(c);
        if c == '>' && before == '=' {
            self.bare_parameter();
        }
    }

    /// At the end of a word: `const` tells the reader more than `let` does, `true` more than `!0`, and the browser the same.
    fn end_word(&mut self) {
        self.end_number();
        for (word, short) in [("const", "let"), ("true", "!0"), ("false", "!1"), ("Infinity", "1/0")] {
            let Some(rest) = self.text.strip_suffix(word) else { continue };
            if rest.ends_with(|c: char| is_word(c) || c == '.') {
                return;
            }
            let before = if short.starts_with('!') { rest.trim_end_matches(' ') } else { rest };
            self.text.replace_range(before.len().., short);
            return;
        }
    }

    /// At the end of a number with many zeros: `3000` is `3e3`.
    fn end_number(&mut self) {
        let head = self.text.trim_end_matches('0');
        let zeros = self.text.len() - head.len();
        let before = head.trim_end_matches(|c: char| c.is_ascii_digit());
        if zeros < 3 || before.len() == head.len() || before.ends_with(|c: char| is_word(c) || c == '.') {
            return;
        }
        let begin = head.len();
        self.text.replace_range(begin.., &format!("e{zeros}"));
    }

    /// At the end of `(a) =>`: one parameter by itself needs no brackets.
    fn bare_parameter(&mut self) {
        let Some(begin) = self.text.rfind('(') else { return };
        let Some(name) = self.text[begin + 1..].strip_suffix(")=>") else { return };
        if name.is_empty() || !name.chars().all(is_word) {
            return;
        }
        let apart = if self.text[..begin].ends_with(is_word) { " " } else { "" };
        let bare = format!("{apart}{name}=>");
        self.text.replace_range(begin.., &bare);
    }

    /// Whether a value comes next, so that a slash begins a regular expression and divides nothing.
    fn expects_value(&self) -> bool {
        let text = self.text.trim_end();
        text.ends_with(|c: char| "([{,;=:?!&|+-*%<>~^".contains(c)) || text.ends_with("return")
    }

    fn string(&mut self, quote: char, rest: &mut Peekable<Chars<'_>>) {
        while let Some(c) = rest.next() {
            self.text.push(c);
            match c {
                '\\' => self.text.extend(rest.next()),
                c if c == quote => return,
                _ => {}
            }
        }
    }

    /// The text of a template, to its end or to what is put into it.
    fn template(&mut self, rest: &mut Peekable<Chars<'_>>) {
        while let Some(c) = rest.next() {
            self.text.push(c);
            match c {
                '\\' => self.text.extend(rest.next()),
                '`' => return,
                '$' if rest.peek() == Some(&'{') => {
                    self.text.extend(rest.next());
                    return self.templates.push(0);
                }
                _ => {}
            }
        }
    }

    fn regular_expression(&mut self, rest: &mut Peekable<Chars<'_>>) {
        let mut class = false;
        while let Some(c) = rest.next() {
            self.text.push(c);
            match c {
                '\\' => self.text.extend(rest.next()),
                '[' => class = true,
                ']' => class = false,
                '/' if !class => return,
                _ => {}
            }
        }
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '$')
}

/// Goes over a comment, to its end.
fn comment(rest: &mut Peekable<Chars<'_>>) {
    let mut before = ' ';
    rest.next();
    for c in rest.by_ref() {
        if (before, c) == ('*', '/') {
            return;
        }
        before = c;
    }
}

#[cfg(test)]
mod tests {
    use super::{script, styles};

    #[test]
    fn styles_keep_what_counts() {
        for (source, served) in [
            ("/* why */\na, b {\n\tc: d; /* e */\n\tf: g;\n}\n", "a,b{c:d;f:g}"),
            (".a > .b ~ .c { d: e }", ".a>.b~.c{d:e}"),
            (".a .b { c: calc(1rem + 2px) }\n", ".a .b{c:calc(1rem + 2px)}"),
            (".shelf > & { a: b; &:hover { c: d; } }", ".shelf>&{a:b;&:hover{c:d}}"),
            (".a :is(b, c) { d: e f }", ".a :is(b,c){d:e f}"),
        ] {
            assert_eq!(styles(source), served);
        }
    }

    #[test]
    fn a_script_keeps_what_counts() {
        for (source, served) in [
            ("const a = 1, b = { c: 2 };\n", "let a=1,b={c:2};"),
            ("const { a } = b, constant = x.const; const [c] = d", "let{a}=b,constant=x.const;let[c]=d"),
            (
                "f((a) => b, (c, d) => e, async (g) => h, ({ i }) => j, () => k)",
                "f(a=>b,(c,d)=>e,async g=>h,({i})=>j,()=>k)",
            ),
            ("return (a) => b >= c", "return a=>b>=c"),
            ("// why\n\tf(\"// not  this\"); // e\ng();\n", "f(\"// not  this\");g();"),
            ("f('a \\' /* b */'); /* c\nd */ g()", "f('a \\' /* b */');g()"),
            ("const f = () => {\n\tg();\n\th();\n};\n", "let f=()=>{g();h()};"),
            ("if (a) {\n\tb();\n}\nelse c();\n", "if(a){b()}\nelse c();"),
            ("const f = function () {}\n(a)\n[b]\n", "let f=function(){}\n(a)\n[b]"),
            ("let a = b\n++c\nd + +e - -f - +g", "let a=b\n++c\nd+ +e- -f-+g"),
            ("return a\n\t? b\n\t: c", "return a?b:c"),
            ("f(`a  ${b + `c  ${ { d: 1 } }  e`}  f`, g)", "f(`a  ${b+`c  ${{d:1}}  e`}  f`,g)"),
            ("a.replace(/[/ ] \\/  x/g, b) / c / d", "a.replace(/[/ ] \\/  x/g,b)/c/d"),
            ("x = (a + b) / c; return /  y/.test(z)", "x=(a+b)/c;return/  y/.test(z)"),
            ("async ({ a }) => await b in c", "async({a})=>await b in c"),
            ("return true && x.true || untrue, false;", "return!0&&x.true||untrue,!1;"),
            (
                "f(-Infinity, 3000, 20000, 100, a2000, 1.5000, `${4000} 5000`)",
                "f(-1/0,3e3,2e4,100,a2000,1.5000,`${4e3} 5000`)",
            ),
        ] {
            assert_eq!(script(source), served);
        }
    }
}

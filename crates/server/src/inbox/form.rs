//! Reading forms strictly: a field that the form does not have, or one that stands twice, is refused.

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use chips_protocol::QuestionAsk;
use percent_encoding::percent_decode;

use super::card::{Notice, Typed, TypedQuestion};
use super::page::Visit;

/// The largest form: four free texts of 10,000 characters, percent-encoded.
const LARGEST: usize = 512 * 1024;

/// The fields of a form, in the order in which they were sent.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fields(Vec<(String, String)>);

/// A form that names a field that is not its own, or one twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Misfit;

impl Fields {
    /// Reads the body of a form.
    ///
    /// # Errors
    /// The page that says what is wrong: another media type, too large, not text.
    pub async fn read(request: Request, visit: &Visit) -> Result<Self, Response> {
        let (parts, body) = request.into_parts();
        if !is_form(&parts.headers) {
            return Err(visit.bad_form(StatusCode::UNSUPPORTED_MEDIA_TYPE));
        }
        let read = tokio::time::timeout(visit.patience, Self::parse(body)).await;
        read.unwrap_or(Err(BodyFault::TooSlow)).map_err(|fault| match fault {
            BodyFault::TooLarge => {
                visit.notice(StatusCode::PAYLOAD_TOO_LARGE, visit.w.too_large, visit.w.too_large_hint)
            }
            BodyFault::NoText => visit.bad_form(StatusCode::BAD_REQUEST),
            BodyFault::TooSlow => {
                let mut response = visit.bad_form(StatusCode::REQUEST_TIMEOUT);
                response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
                response
            }
        })
    }

    async fn parse(body: Body) -> Result<Self, BodyFault> {
        let bytes = to_bytes(body, LARGEST).await.map_err(|_| BodyFault::TooLarge)?;
        // Read leniently, text in another encoding would arrive as an answer in other words than the person's.
        if percent_decode(&bytes).decode_utf8().is_err() {
            return Err(BodyFault::NoText);
        }
        Ok(Self(url::form_urlencoded::parse(&bytes).into_owned().collect()))
    }

    /// Takes a field that must be there once.
    ///
    /// # Errors
    /// It is missing, or stands twice.
    pub fn take(&mut self, name: &str) -> Result<String, Misfit> {
        self.take_optional(name)?.ok_or(Misfit)
    }

    /// Takes a field that may be there once.
    ///
    /// # Errors
    /// It stands twice.
    pub fn take_optional(&mut self, name: &str) -> Result<Option<String>, Misfit> {
        let mut values = self.take_all(name);
        match values.len() {
            0 => Ok(None),
            1 => Ok(values.pop()),
            _ => Err(Misfit),
        }
    }

    /// Takes a field that may be there several times.
    pub fn take_all(&mut self, name: &str) -> Vec<String> {
        let mut values = Vec::new();
        self.0.retain_mut(|(key, value)| {
            let ours = key == name;
            if ours {
                values.push(std::mem::take(value));
            }
            !ours
        });
        values
    }

    /// Checks that nothing is left.
    ///
    /// # Errors
    /// A field that the form does not have.
    pub fn end(self) -> Result<(), Misfit> {
        if self.0.is_empty() { Ok(()) } else { Err(Misfit) }
    }

    /// The free texts of an answer's form, whatever else it holds: to be kept where nothing is sent.
    pub fn texts(&self) -> Vec<String> {
        let texts =
            self.0.iter().filter(|(name, value)| name.starts_with('t') && name != "token" && !value.trim().is_empty());
        texts.map(|(_, value)| line_feeds(value)).collect()
    }
}

enum BodyFault {
    TooLarge,
    NoText,
    TooSlow,
}

fn is_form(headers: &HeaderMap) -> bool {
    let media_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let mut parts = media_type.split(';').map(str::trim);
    let essence = parts.next().unwrap_or_default();
    // In another charset, the answer would arrive in other words than the person's.
    let utf_8 = parts.filter_map(|part| part.split_once('=')).all(|(name, value)| {
        !name.trim().eq_ignore_ascii_case("charset") || value.trim().trim_matches('"').eq_ignore_ascii_case("utf-8")
    });
    essence.eq_ignore_ascii_case("application/x-www-form-urlencoded")
        && utf_8
        && !headers.contains_key(header::CONTENT_ENCODING)
}

/// Browsers send line breaks as CR LF; the answer has them as the person typed them.
fn line_feeds(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

/// What an answer's form says, read against the questions that it was made for.
#[derive(Debug, Clone, Default)]
pub(crate) struct AnswerForm {
    /// What was chosen and typed, with the attempt's ids.
    pub typed: Typed,
    /// The form's token.
    pub token: String,
    /// The person has said to send only what is answered.
    pub partial: bool,
}

impl AnswerForm {
    /// Reads the fields.
    ///
    /// # Errors
    /// A field that the form does not have, one twice, or an option that was not offered.
    pub fn read(mut fields: Fields, ask: &QuestionAsk) -> Result<Self, Misfit> {
        let token = fields.take("token")?;
        let event = fields.take("event")?;
        let key = fields.take("key")?;
        let partial = match fields.take_optional("partial")?.as_deref() {
            None => false,
            Some("yes") => true,
            Some(_) => return Err(Misfit),
        };
        let which = match fields.take_optional("which")?.as_deref() {
            None => false,
            Some("yes") => true,
            Some(_) => return Err(Misfit),
        };
        let mut questions = Vec::with_capacity(ask.questions.len());
        for (index, question) in ask.questions.iter().enumerate() {
            let mut typed = TypedQuestion::default();
            for value in fields.take_all(&format!("q{index}")) {
                match value.as_str() {
                    "none" if question.multi() && !typed.none => typed.none = true,
                    "text" if question.free_text() && !question.multi() && !typed.own_words => typed.own_words = true,
                    value => {
                        let option = offered(value, question.options.len()).ok_or(Misfit)?;
                        if typed.chosen.contains(&option) {
                            return Err(Misfit);
                        }
                        typed.chosen.push(option);
                    }
                }
            }
            if !question.multi() && typed.chosen.len() + usize::from(typed.own_words) > 1 {
                return Err(Misfit);
            }
            typed.chosen.sort_unstable();
            if let Some(text) = fields.take_optional(&format!("t{index}"))? {
                if !question.free_text() {
                    return Err(Misfit);
                }
                typed.text = line_feeds(&text);
            }
            questions.push(typed);
        }
        fields.end()?;
        Ok(Self { typed: Typed { questions, attempt: Some((event, key)), which }, token, partial })
    }
}

/// The option with this index as the form spells it.
fn offered(value: &str, options: usize) -> Option<usize> {
    (0..options).find(|option| option.to_string() == value)
}

/// An entry of an answer: the question's index, the chosen options' indices, and the free text.
pub(crate) type Entry<'a> = (usize, &'a [usize], Option<&'a str>);

impl AnswerForm {
    /// What is to be sent, or why it is not clear yet.
    ///
    /// # Errors
    /// What the person must say first.
    pub fn entries(&self, ask: &QuestionAsk) -> Result<Vec<Entry<'_>>, Notice> {
        let mut entries = Vec::new();
        for (index, (question, typed)) in ask.questions.iter().zip(&self.typed.questions).enumerate() {
            // Line ends before and behind it are the keyboard's, not the person's.
            let text = Some(typed.text.trim()).filter(|text| !chips_protocol::text::is_blank(text));
            if question.multi() {
                match (typed.none, !typed.chosen.is_empty() || text.is_some()) {
                    (true, true) => return Err(Notice::NoneAndSome),
                    (false, false) => {}
                    _ => entries.push((index, typed.chosen.as_slice(), text)),
                }
            } else if !typed.chosen.is_empty() {
                // One of the two is sent: who gave both is asked once which it is.
                if text.is_some() && !self.typed.which {
                    return Err(Notice::WhichOne);
                }
                entries.push((index, typed.chosen.as_slice(), None));
            } else if text.is_some() {
                entries.push((index, &[], text));
            }
        }
        let left = ask.questions.len() - entries.len();
        match entries.len() {
            0 => Err(Notice::Empty),
            _ if left > 0 && !self.partial => Err(Notice::Partial(left)),
            _ => Ok(entries),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use serde_json::json;

    fn fields(pairs: &[(&str, &str)]) -> Fields {
        let ids = [("token", "t"), ("event", "e"), ("key", "k")];
        Fields(ids.iter().chain(pairs).map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    /// A single choice, a single choice with free text, several choices with free text.
    fn ask() -> QuestionAsk {
        let options = json!([{"value": "a", "label": "A"}, {"value": "b", "label": "B"}]);
        serde_json::from_value(json!({
            "ask_id": "qst_01K4ZQPX000000000000000009",
            "questions": [
                {"question_id": "1", "prompt": "?", "options": options},
                {"question_id": "2", "prompt": "?", "options": options, "allow_free_text": true},
                {"question_id": "3", "prompt": "?", "options": options, "allow_free_text": true, "multi_select": true},
            ],
        }))
        .unwrap()
    }

    fn one(index: usize) -> QuestionAsk {
        let mut ask = ask();
        ask.questions = vec![ask.questions.remove(index)];
        ask
    }

    #[test]
    fn what_the_form_does_not_have_is_refused() {
        for bad in [
            &[("answered_by", "usr_01K4ZQPX000000000000000003")][..],
            &[("q0", "2")],
            &[("q0", "-1")],
            &[("q0", "00")],
            &[("q0", "+0")],
            &[("q0", "")],
            &[("q0", "a")],
            &[("q0", "0"), ("q0", "1")],
            &[("q0", "0"), ("q0", "0")],
            &[("q0", "text")],
            &[("q0", "none")],
            &[("t0", "x")],
            &[("q1", "0"), ("q1", "text")],
            &[("q1", "none")],
            &[("q2", "0"), ("q2", "0")],
            &[("q2", "none"), ("q2", "none")],
            &[("q2", "text")],
            &[("t1", "x"), ("t1", "y")],
            &[("q3", "0")],
            &[("token", "t")],
            &[("partial", "no")],
            &[("which", "no")],
            &[("which", "yes"), ("which", "yes")],
            &[("partial", "yes"), ("partial", "yes")],
            &[("timed_out", "true")],
        ] {
            assert_eq!(AnswerForm::read(fields(bad), &ask()).unwrap_err(), Misfit, "{bad:?}");
        }
        assert_eq!(AnswerForm::read(Fields::default(), &ask()).unwrap_err(), Misfit);
    }

    #[test]
    fn each_kind_of_question_says_what_is_sent() {
        let entries = |ask: &QuestionAsk, pairs: &[(&str, &str)]| {
            let form = AnswerForm::read(fields(pairs), ask).unwrap();
            form.entries(ask).map(|entries| {
                let own = |(index, chosen, text): Entry<'_>| (index, chosen.to_vec(), text.map(str::to_owned));
                entries.into_iter().map(own).collect::<Vec<_>>()
            })
        };
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(entries(&one(0), &[("q0", "1")]), Ok(vec![(0, vec![1], None)]));
        assert_eq!(entries(&one(0), &[]), Err(Notice::Empty));

        assert_eq!(entries(&one(1), &[("q0", "text"), ("t0", "3 days")]), Ok(vec![(0, vec![], text("3 days"))]));
        assert_eq!(entries(&one(1), &[("q0", "text"), ("t0", " \r\n")]), Err(Notice::Empty));
        assert_eq!(entries(&one(1), &[("q0", "0"), ("t0", "a draft")]), Err(Notice::WhichOne));
        assert_eq!(entries(&one(1), &[("q0", "0"), ("t0", "a draft"), ("which", "yes")]), Ok(vec![(0, vec![0], None)]));
        assert_eq!(
            entries(&one(1), &[("q0", "text"), ("t0", "a draft"), ("which", "yes")]),
            Ok(vec![(0, vec![], text("a draft"))])
        );
        assert_eq!(entries(&one(1), &[("q0", "0"), ("t0", " \u{200b}")]), Ok(vec![(0, vec![0], None)]));
        assert_eq!(entries(&one(1), &[("q0", "0"), ("t0", "")]), Ok(vec![(0, vec![0], None)]));
        assert_eq!(entries(&one(1), &[("t0", "a\r\nb")]), Ok(vec![(0, vec![], text("a\nb"))]));

        assert_eq!(entries(&one(2), &[("q0", "1"), ("q0", "0")]), Ok(vec![(0, vec![0, 1], None)]));
        assert_eq!(entries(&one(2), &[("q0", "0"), ("t0", "and")]), Ok(vec![(0, vec![0], text("and"))]));
        assert_eq!(entries(&one(2), &[("q0", "none")]), Ok(vec![(0, vec![], None)]));
        assert_eq!(entries(&one(2), &[("q0", "none"), ("q0", "0")]), Err(Notice::NoneAndSome));
        assert_eq!(entries(&one(2), &[("q0", "none"), ("t0", "x")]), Err(Notice::NoneAndSome));
        assert_eq!(entries(&one(2), &[("t0", "\u{200b}")]), Err(Notice::Empty));

        assert_eq!(entries(&ask(), &[("q0", "0"), ("t1", ""), ("t2", "")]), Err(Notice::Partial(2)));
        assert_eq!(entries(&ask(), &[("q0", "0"), ("partial", "yes")]), Ok(vec![(0, vec![0], None)]));
        assert_eq!(entries(&ask(), &[("partial", "yes")]), Err(Notice::Empty));
        assert_eq!(entries(&ask(), &[("q1", "0"), ("t1", "or this")]), Err(Notice::WhichOne));
        assert_eq!(entries(&ask(), &[("q1", "0"), ("t1", "or this"), ("which", "yes")]), Err(Notice::Partial(2)));
        assert_eq!(
            entries(&ask(), &[("q0", "1"), ("q1", "text"), ("t1", "two"), ("t2", "three")]),
            Ok(vec![(0, vec![1], None), (1, vec![], text("two")), (2, vec![], text("three"))])
        );
    }

    #[tokio::test]
    async fn a_body_that_is_no_text_is_refused() {
        assert!(Fields::parse(Body::from("t0=%FF")).await.is_err());
        assert!(Fields::parse(Body::from("t0=%EF%BF%BD")).await.is_ok(), "the replacement character itself is text");
        assert!(Fields::parse(Body::from("t0=%zz%")).await.is_ok());
        assert!(Fields::parse(Body::from(vec![b'a'; LARGEST + 1])).await.is_err());
    }
}

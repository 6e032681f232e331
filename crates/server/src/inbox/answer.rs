//! `POST /asks/ASK_ID`: a person answers.

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use chips_core::{Refusal, Who as Credential};
use chips_protocol::api::Ask;
use chips_protocol::{AskId, Draft, Fault, FaultCode, QuestionAsk, validate};
use chips_store::{Submitted, WriteError};
use serde_json::{Value, json};

use super::card::{Notice, Typed};
use super::form::{AnswerForm, Entry, Fields};
use super::page::{Person, Visit};
use super::{ask, card};
use crate::state::AppState;

/// `POST /asks/ASK_ID`
///
/// Answered: to the question's page (303). Not sent, because something is unclear or it came too late: the question again, with
/// what was typed. To the script: the card alone, in every case.
pub(crate) async fn submit(State(state): State<AppState>, Path(ask_id): Path<String>, request: Request) -> Response {
    let headers = request.headers().clone();
    let visit = Visit::of(&state, &headers);
    let fields = match Fields::read(request, &visit).await {
        Ok(fields) => fields,
        Err(response) => return response,
    };
    let person = match Person::of(&state, &headers).await {
        Ok(Some(person)) => person,
        Ok(None) => return signed_out(&visit, &fields, &ask_id),
        Err(fault) => return visit.unreadable(&fault),
    };
    let asked = match ask_id.parse::<AskId>() {
        Ok(ask_id) => state.store.ask(person.identity(), ask_id).await,
        Err(_) => return visit.not_found(),
    };
    let asked = match asked {
        Ok(Some(asked)) => asked,
        Ok(None) => return visit.not_found(),
        Err(fault) => return visit.unreadable(&fault),
    };
    let Some(content) = asked.ask.as_ask() else { return visit.not_found() };
    let Ok(form) = AnswerForm::read(fields, content) else {
        return visit.bad_form(StatusCode::UNPROCESSABLE_ENTITY);
    };
    Attempt { state: &state, person: &person, asked: &asked, content }.send(form).await
}

/// An answer on its way.
struct Attempt<'a> {
    state: &'a AppState,
    person: &'a Person,
    asked: &'a Ask,
    content: &'a QuestionAsk,
}

impl Attempt<'_> {
    async fn send(&self, mut form: AnswerForm) -> Response {
        if !self.person.signed.holds(&form.token) {
            // The ids may be another person's attempt: what comes next is a new one.
            form.typed.attempt = None;
            return self.again(StatusCode::FORBIDDEN, form.typed, Notice::OtherSignIn).await;
        }
        let entries = match form.entries(self.content) {
            Ok(entries) => entries,
            Err(notice) => {
                let status = match notice {
                    Notice::Partial(_) | Notice::WhichOne => StatusCode::OK,
                    _ => StatusCode::UNPROCESSABLE_ENTITY,
                };
                return self.again(status, form.typed, notice).await;
            }
        };
        let draft = match validate::draft(&self.event(&form.typed, &entries)) {
            Ok(draft) => draft,
            Err(faults) => return self.faulty(form.typed, &faults).await,
        };
        let unsent = unsent(&form.typed, &entries);
        self.write(draft, form.typed, unsent).await
    }

    async fn write(&self, draft: Draft, mut typed: Typed, unsent: Typed) -> Response {
        match self.state.store.submit(self.person.identity().sender, draft).await {
            // The ids are another question's answer's: this one was not taken.
            Ok(Submitted::Replayed { record, .. }) if record.event.content.ask_id() != self.asked.ask_id => {
                tracing::warn!("an answer from the inbox had the ids of another");
                typed.attempt = None;
                self.again(StatusCode::CONFLICT, typed, Notice::NotAccepted).await
            }
            // This form was sent before and said something else: the first answer stands, and no text is lost.
            Ok(Submitted::Replayed { differs: true, .. })
                if typed.questions.iter().any(|typed| !typed.text.trim().is_empty()) =>
            {
                self.show(StatusCode::CONFLICT, typed, Some(Notice::TooLate)).await
            }
            Ok(_)
                if self.person.visit.piece.is_some() || unsent.questions.iter().any(|typed| !typed.text.is_empty()) =>
            {
                self.show(StatusCode::OK, unsent, None).await
            }
            Ok(_) => Redirect::to(&format!("/asks/{}", self.asked.ask_id)).into_response(),
            Err(WriteError::Refused(refusal)) => match *refusal {
                Refusal::AlreadyClosed(_) => self.show(StatusCode::CONFLICT, typed, Some(Notice::TooLate)).await,
                Refusal::NotFound(_) => self.person.visit.not_found(),
                Refusal::Invalid(faults) => self.faulty(typed, &faults).await,
                other => {
                    // Only ids that were not minted for this form lead here.
                    tracing::warn!(code = other.code().as_str(), "an answer from the inbox was refused");
                    typed.attempt = None;
                    self.again(StatusCode::CONFLICT, typed, Notice::NotAccepted).await
                }
            },
            Err(WriteError::Unavailable { reason, retry_after_s }) => {
                tracing::warn!(%reason, "an answer from the inbox could not be written");
                let mut response = self.again(StatusCode::SERVICE_UNAVAILABLE, typed, Notice::CannotWrite).await;
                response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(retry_after_s));
                response
            }
            Err(WriteError::Failed) => self.person.visit.unavailable(5),
        }
    }

    /// The answer as a client would write it, to be checked by the same rules.
    fn event(&self, typed: &Typed, entries: &[Entry<'_>]) -> Value {
        let (event, key) = typed.attempt.clone().unwrap_or_default();
        let answers: Vec<Value> = entries
            .iter()
            .map(|(index, chosen, text)| {
                let question = &self.content.questions[*index];
                let values: Vec<&str> = chosen.iter().map(|&option| question.options[option].value.as_str()).collect();
                let mut answer = json!({ "question_id": question.question_id, "values": values });
                if let Some(text) = text {
                    answer["free_text"] = json!(text);
                }
                answer
            })
            .collect();
        let sender = self.person.identity().sender;
        let id = match sender.who {
            Credential::Person(id) => id.to_string(),
            Credential::Harness(id) => id.to_string(),
        };
        json!({
            "v": 1,
            "type": "question.answered",
            "id": event,
            "workspace_id": sender.workspace_id,
            "run_id": self.asked.ask.envelope.run_id,
            "idempotency_key": key,
            "actor": { "kind": "person", "id": id },
            "ask_id": self.asked.ask_id,
            "answers": answers,
        })
    }

    /// The form again, with what the rules have against it.
    async fn faulty(&self, mut typed: Typed, faults: &[Fault]) -> Response {
        let about = |field: &str| faults.iter().any(|fault| fault.pointer == field);
        if about("/id") || about("/idempotency_key") {
            return self.person.visit.bad_form(StatusCode::UNPROCESSABLE_ENTITY);
        }
        let of = |code: FaultCode| faults.iter().any(|fault| fault.code == code);
        let notice = if of(FaultCode::TooLong) {
            Notice::TooLong
        } else if of(FaultCode::ForbiddenCharacter) {
            Notice::BadCharacters
        } else {
            // By their codes: what a fault says can quote what was typed.
            let codes: Vec<_> = faults.iter().map(|fault| fault.code.as_str()).collect();
            tracing::warn!(?codes, "an answer from the inbox does not fit its question");
            typed.attempt = None;
            Notice::NotAccepted
        };
        self.again(StatusCode::UNPROCESSABLE_ENTITY, typed, notice).await
    }

    /// The question as it stands now with what was typed: as a form where it is open, else as too late.
    async fn again(&self, status: StatusCode, typed: Typed, notice: Notice) -> Response {
        self.show(status, typed, Some(notice)).await
    }

    async fn show(&self, status: StatusCode, typed: Typed, notice: Option<Notice>) -> Response {
        let now = match self.state.store.ask(self.person.identity(), self.asked.ask_id).await {
            Ok(Some(now)) => Arc::new(now),
            Ok(None) => return self.person.visit.not_found(),
            Err(fault) => return self.person.visit.unreadable(&fault),
        };
        let closed = card::Shelf::of(&now) == card::Shelf::Closed;
        let (status, notice) = match notice {
            Some(_) if closed => (StatusCode::CONFLICT, Some(Notice::TooLate)),
            notice => (status, notice),
        };
        ask::respond(self.state, self.person, &now, status, &typed, notice).await
    }
}

/// The texts that this answer does not send: typed before an option was tapped instead.
fn unsent(typed: &Typed, entries: &[Entry<'_>]) -> Typed {
    let mut left = typed.clone();
    for (index, _, text) in entries {
        if text.is_some() {
            left.questions[*index].text.clear();
        }
    }
    left
}

/// The answer to a form whose session has ended: nothing is lost.
fn signed_out(visit: &Visit, fields: &Fields, ask_id: &str) -> Response {
    if visit.piece.is_some() {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    let way = match ask_id.parse::<AskId>() {
        Ok(ask_id) => format!("/sign-in?next=/asks/{ask_id}"),
        Err(_) => "/sign-in".to_owned(),
    };
    let w = visit.w;
    visit.notice_with(StatusCode::UNAUTHORIZED, w.signed_out, w.signed_out_hint, fields.texts(), (&way, w.sign_in))
}

//! "Where you are told" and "When you are told": a person's endpoints, and how they want to hear of questions.

use std::collections::BTreeSet;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use chips_core::Who;
use chips_core::notify::{Channel, GRACE_LIMIT, Outcome, Preferences, Quiet};
use chips_protocol::api::{Me, Tier};
use chips_protocol::text::check_name;
use chips_protocol::{PersonId, SpaceId};
use chips_store::{Endpoint, NewEndpoint};
use serde::Serialize;
use url::Url;

use super::email::EmailForm;
use super::push::{device_name, is_here};
use super::telegram::TelegramForm;
use super::{open, render, unwritten};
use crate::channels::{ntfy, speaking, web_push, webhook};
use crate::inbox::form::Fields;
use crate::inbox::html::{self, Html, TimeAs};
use crate::inbox::page::Person;
use crate::outbound::Outbound;
use crate::state::AppState;
use crate::words::Words;

/// Characters of an endpoint's name.
const NAME: usize = 60;
/// Characters of an address.
pub(super) const ADDRESS: usize = 2000;
/// Characters of an access token.
const TOKEN: usize = 400;
/// The server that an ntfy topic is on where nobody says another.
const NTFY: &str = "https://ntfy.sh";
/// The tiers of which people are told outside the inbox.
const TIERS: [Tier; 2] = [Tier::TimeSensitive, Tier::Active];
/// Back to what was changed.
pub(super) const ENDPOINTS: &str = "/settings#told";
const TIMES: &str = "/settings#when";

/// What the two sections show.
pub(super) struct Told {
    pub endpoints: Vec<EndpointRow>,
    pub ntfy: NtfyForm,
    pub webhook: WebhookForm,
    /// Where the server sends mail.
    pub email: Option<EmailForm>,
    /// Where the server has a bot on Telegram.
    pub telegram: Option<TelegramForm>,
    /// The key of a webhook that was just added.
    pub key: Option<String>,
    pub when: WhenForm,
    pub tiers: Vec<TierRow>,
    pub spaces: Vec<SpaceRow>,
}

pub(super) struct EndpointRow {
    pub endpoint_id: i64,
    pub channel: &'static str,
    pub name: Html,
    pub since: Html,
    pub trouble: Option<Html>,
    /// What became of a test message.
    pub tested: Option<Html>,
    pub disabled: bool,
    /// It is the browser that shows the page.
    pub here: bool,
}

/// A text in a form, and what is wrong with it.
#[derive(Debug, Default, Clone)]
pub(super) struct Field {
    pub text: String,
    pub fault: Option<String>,
}

impl Field {
    pub(super) fn of(text: String) -> Self {
        Self { text, fault: None }
    }

    pub(super) fn blame(&mut self, fault: &str) {
        self.fault.get_or_insert_with(|| fault.to_owned());
    }
}

#[derive(Debug, Clone)]
pub(super) struct NtfyForm {
    pub server: Field,
    pub topic: Field,
    pub access: Field,
    pub open: bool,
}

#[derive(Debug, Default, Clone)]
pub(super) struct WebhookForm {
    pub url: Field,
    pub name: Field,
    pub open: bool,
}

#[derive(Debug, Clone)]
pub(super) struct WhenForm {
    pub zone: Field,
    pub from: Field,
    pub to: Field,
    /// The quiet hours hold for what blocks an agent too.
    pub all: bool,
    pub grace: Field,
    pub reminders: bool,
    /// What is ticked: a tier and a channel, `active.ntfy`.
    uses: BTreeSet<String>,
    muted: BTreeSet<String>,
}

pub(super) struct TierRow {
    pub label: &'static str,
    /// The name of each channel, its value in the form, and whether it is ticked.
    pub channels: Vec<(&'static str, String, bool)>,
}

pub(super) struct SpaceRow {
    pub id: String,
    pub name: Html,
    pub muted: bool,
}

/// What has just happened, for the page that says so.
#[derive(Default)]
pub(super) struct Happened {
    ntfy: Option<NtfyForm>,
    webhook: Option<WebhookForm>,
    email: Option<EmailForm>,
    telegram: Option<TelegramForm>,
    key: Option<String>,
    tested: Option<(i64, Outcome)>,
    when: Option<WhenForm>,
}

impl Happened {
    /// An address was given.
    pub(super) fn with_email(form: EmailForm) -> Self {
        Self { email: Some(form), ..Self::default() }
    }

    /// A link to a bot was asked for.
    pub(super) fn with_telegram(form: TelegramForm) -> Self {
        Self { telegram: Some(form), ..Self::default() }
    }
}

/// What a channel is called.
pub(in crate::inbox) const fn called(channel: Channel, w: &Words) -> &'static str {
    match channel {
        Channel::WebPush => w.channel_web_push,
        Channel::Ntfy => w.channel_ntfy,
        Channel::Email => w.channel_email,
        Channel::Telegram => w.channel_telegram,
        Channel::Webhook | Channel::HarnessWebhook => w.channel_webhook,
    }
}

/// The channels of this server that reach a person.
fn channels(state: &AppState) -> impl Iterator<Item = Channel> + use<'_> {
    Channel::PERSONAL.into_iter().filter(|channel| state.channels.has(*channel))
}

impl Told {
    pub(super) fn new(
        state: &AppState,
        person: &Person,
        me: &Me,
        endpoints: &[Endpoint],
        preferences: &Preferences,
        happened: Happened,
    ) -> Self {
        let w = person.visit.w;
        let when = happened.when.unwrap_or_else(|| WhenForm::of(state, preferences));
        let tested = |endpoint: &Endpoint| match &happened.tested {
            Some((id, outcome)) if *id == endpoint.endpoint_id => Some(trial(outcome, w)),
            _ => None,
        };
        Self {
            endpoints: endpoints.iter().map(|endpoint| row(endpoint, tested(endpoint), person)).collect(),
            ntfy: happened.ntfy.unwrap_or_else(|| NtfyForm {
                server: Field::of(NTFY.to_owned()),
                topic: Field::default(),
                access: Field::default(),
                open: false,
            }),
            webhook: happened.webhook.unwrap_or_default(),
            email: EmailForm::shown(state, person, happened.email),
            telegram: TelegramForm::shown(state, happened.telegram),
            key: happened.key,
            tiers: TIERS
                .map(|tier| TierRow {
                    label: if tier == Tier::TimeSensitive { w.tier_waits } else { w.tier_goes },
                    channels: channels(state)
                        .map(|channel| {
                            let value = used(tier, channel);
                            let ticked = when.uses.contains(&value);
                            (called(channel, w), value, ticked)
                        })
                        .collect(),
                })
                .into(),
            spaces: me
                .spaces
                .iter()
                .map(|space| {
                    let id = space.id.to_string();
                    SpaceRow { muted: when.muted.contains(&id), name: Html::shown(&space.name), id }
                })
                .collect(),
            when,
        }
    }
}

fn used(tier: Tier, channel: Channel) -> String {
    format!("{}.{channel}", if tier == Tier::TimeSensitive { "waits" } else { "goes" })
}

fn row(endpoint: &Endpoint, tested: Option<Html>, person: &Person) -> EndpointRow {
    let w = person.visit.w;
    let since = html::time(endpoint.created_at, person.visit.now, TimeAs::At, "{t}");
    let trouble = match &endpoint.trouble {
        _ if endpoint.disabled => Some(Html::text(w.endpoint_gone)),
        Some(what) => Some(match what.strip_prefix(web_push::KEY_MISMATCH) {
            Some(said) if endpoint.channel == Channel::WebPush => {
                Html::phrase(w.push_mismatch, &[("what", Html::isolated(said.trim_start_matches([':', ' '])))])
            }
            _ => Html::phrase(w.endpoint_trouble, &[("what", Html::isolated(what))]),
        }),
        None => None,
    };
    EndpointRow {
        endpoint_id: endpoint.endpoint_id,
        channel: called(endpoint.channel, w),
        name: match endpoint.channel {
            Channel::WebPush => device_name(&endpoint.name, w),
            _ => Html::shown(&endpoint.name),
        },
        here: is_here(endpoint, person),
        since: Html::phrase(w.endpoint_since, &[("when", since)]),
        trouble,
        tested,
        disabled: endpoint.disabled,
    }
}

/// What the other side made of a test message. "Accepted" says nothing of whether it arrives.
fn trial(outcome: &Outcome, w: &Words) -> Html {
    match outcome {
        outcome if outcome.is_accepted() => Html::text(w.trial_accepted),
        Outcome::TimedOut => Html::text(w.trial_timed_out),
        other => Html::phrase(w.trial_refused, &[("what", Html::isolated(other.detail()))]),
    }
}

impl WhenForm {
    fn of(state: &AppState, preferences: &Preferences) -> Self {
        let quiet = |part: fn(&Quiet) -> String| preferences.quiet.as_ref().map(part).unwrap_or_default();
        let mut uses = BTreeSet::new();
        for tier in TIERS {
            let not = preferences.not.get(&tier);
            let wanted = channels(state).filter(|channel| !not.is_some_and(|not| not.contains(channel)));
            uses.extend(wanted.map(|channel| used(tier, channel)));
        }
        Self {
            zone: Field::of(preferences.zone.clone()),
            from: Field::of(quiet(|quiet| quiet.from.to_string())),
            to: Field::of(quiet(|quiet| quiet.to.to_string())),
            all: preferences.quiet.is_some_and(|quiet| quiet.time_sensitive),
            grace: Field::of(preferences.grace_seconds.to_string()),
            reminders: preferences.reminders,
            uses,
            muted: preferences.muted.iter().map(SpaceId::to_string).collect(),
        }
    }

    /// The fields of the form; nothing where it has others.
    fn read(mut fields: Fields) -> Option<Self> {
        let mut text = |name| fields.take(name).ok().map(|text| Field::of(text.trim().to_owned()));
        let (zone, from, to, grace) = (text("zone")?, text("from")?, text("to")?, text("grace")?);
        let reminders = match fields.take("reminders").ok()?.as_str() {
            "on" => true,
            "off" => false,
            _ => return None,
        };
        let all = match fields.take_optional("all").ok()?.as_deref() {
            None => false,
            Some("yes") => true,
            Some(_) => return None,
        };
        let uses = fields.take_all("use").into_iter().collect();
        let muted = fields.take_all("mute").into_iter().collect();
        fields.end().ok()?;
        Some(Self { zone, from, to, all, grace, reminders, uses, muted })
    }

    /// What it says, on top of what it can't say. Faults are noted beside their fields.
    fn preferences(&mut self, state: &AppState, me: &Me, before: &Preferences, w: &Words) -> Option<Preferences> {
        let mut preferences = before.clone();
        preferences.zone.clone_from(&self.zone.text);
        preferences.reminders = self.reminders;
        let zone = Preferences { zone: self.zone.text.clone(), ..Preferences::default() };
        if zone.check().is_err() {
            self.zone.blame(w.fault_zone);
        }
        preferences.quiet = match (self.from.text.as_str(), self.to.text.as_str()) {
            ("", "") => None,
            (from, to) => match (from.parse(), to.parse()) {
                (Ok(from), Ok(to)) if from != to => Some(Quiet { from, to, time_sensitive: self.all }),
                (Err(_), _) => {
                    self.from.blame(w.fault_quiet);
                    None
                }
                _ => {
                    self.to.blame(w.fault_quiet);
                    None
                }
            },
        };
        match self.grace.text.parse() {
            Ok(seconds) if seconds <= GRACE_LIMIT => preferences.grace_seconds = seconds,
            _ => self.grace.blame(w.fault_grace),
        }
        for tier in TIERS {
            let not = preferences.not.entry(tier).or_default();
            for channel in channels(state) {
                if self.uses.contains(&used(tier, channel)) {
                    not.remove(&channel);
                } else {
                    not.insert(channel);
                }
            }
        }
        preferences.not.retain(|_, not| !not.is_empty());
        for space in &me.spaces {
            if self.muted.contains(&space.id.to_string()) {
                preferences.muted.insert(space.id);
            } else {
                preferences.muted.remove(&space.id);
            }
        }
        let faulty = [&self.zone, &self.from, &self.to, &self.grace].iter().any(|field| field.fault.is_some());
        (!faulty && preferences.check().is_ok()).then_some(preferences)
    }
}

pub(super) fn person_id(person: &Person) -> Option<PersonId> {
    match person.identity().sender.who {
        Who::Person(id) => Some(id),
        Who::Harness(_) => None,
    }
}

pub(super) fn misfit(person: &Person) -> Response {
    person.visit.bad_form(StatusCode::UNPROCESSABLE_ENTITY)
}

/// The page again, with what is wrong beside its field.
pub(super) async fn again(state: &AppState, person: &Person, happened: Happened) -> Response {
    render(state, person, StatusCode::UNPROCESSABLE_ENTITY, happened).await
}

/// `POST /settings/told/ntfy`: adds a topic.
pub(crate) async fn add_ntfy(State(state): State<AppState>, request: Request) -> Response {
    let (person, mut fields) = match open(&state, request).await {
        Ok(open) => open,
        Err(response) => return response,
    };
    let [server, topic, access] =
        ["server", "topic", "access"].map(|name| fields.take(name).map(|text| text.trim().to_owned()));
    let (Ok(server), Ok(topic), Ok(access), Ok(())) = (server, topic, access, fields.end()) else {
        return misfit(&person);
    };
    let w = person.visit.w;
    let mut form =
        NtfyForm { server: Field::of(server), topic: Field::of(topic), access: Field::of(access), open: true };
    let address = match ntfy::address(&form.server.text, &form.topic.text) {
        Ok(address) => check(&state, &mut form.server, address, w),
        Err(ntfy::Misnamed::Server) => {
            form.server.blame(w.fault_server);
            None
        }
        Err(ntfy::Misnamed::Topic) => {
            form.topic.blame(w.fault_topic);
            None
        }
    };
    let token = form.access.text.clone();
    if token.len() > TOKEN || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        form.access.blame(w.fault_access);
    }
    let (Some(address), None) = (address, &form.access.fault) else {
        return again(&state, &person, Happened { ntfy: Some(form), ..Happened::default() }).await;
    };
    let access = ntfy::Access { token: (!token.is_empty()).then_some(token) };
    let host = address.host_str().unwrap_or_default();
    let endpoint = NewEndpoint {
        channel: Channel::Ntfy,
        name: cut(&format!("{} ({host})", form.topic.text)),
        address: address.to_string(),
        secret: spoken(&access, w),
        session_id: None,
    };
    match state.store.add_endpoint(person.identity(), endpoint).await {
        Ok(Some(_)) => Redirect::to(ENDPOINTS).into_response(),
        Ok(None) => {
            form.topic.blame(w.fault_many);
            again(&state, &person, Happened { ntfy: Some(form), ..Happened::default() }).await
        }
        Err(fault) => unwritten(&person.visit, &fault),
    }
}

/// `POST /settings/told/webhook`: adds a signed webhook, and shows its key this once.
pub(crate) async fn add_webhook(State(state): State<AppState>, request: Request) -> Response {
    let (person, mut fields) = match open(&state, request).await {
        Ok(open) => open,
        Err(response) => return response,
    };
    let [url, name] = ["url", "name"].map(|name| fields.take(name).map(|text| text.trim().to_owned()));
    let (Ok(url), Ok(name), Ok(())) = (url, name, fields.end()) else { return misfit(&person) };
    let w = person.visit.w;
    let mut form = WebhookForm { url: Field::of(url), name: Field::of(name), open: true };
    let address = match Outbound::typed(&form.url.text) {
        _ if form.url.text.len() > ADDRESS => {
            form.url.blame(w.fault_long);
            None
        }
        Some(url) => check(&state, &mut form.url, url, w),
        None => {
            form.url.blame(w.fault_url);
            None
        }
    };
    if !form.name.text.is_empty() && check_name(&form.name.text, NAME).is_err() {
        form.name.blame(w.fault_name);
    }
    let known = match state.store.endpoints(person.identity()).await {
        Ok(known) => known,
        Err(fault) => return person.visit.unreadable(&fault),
    };
    // To add it again would make a new key, and whoever checks with the old one would take nothing any more.
    if address.as_ref().is_some_and(|address| {
        known
            .iter()
            .any(|known| known.channel == Channel::Webhook && known.address == address.as_str() && !known.disabled)
    }) {
        form.url.blame(w.fault_known);
    }
    let (Some(address), None, None) = (address, &form.url.fault, &form.name.fault) else {
        return again(&state, &person, Happened { webhook: Some(form), ..Happened::default() }).await;
    };
    let Ok(key) = webhook::new_key() else { return person.visit.unavailable(5) };
    let name = if form.name.text.is_empty() { address.host_str().unwrap_or_default() } else { &form.name.text };
    let endpoint = NewEndpoint {
        channel: Channel::Webhook,
        name: cut(name),
        address: address.to_string(),
        secret: spoken(&webhook::Keys::one(key.clone()), w),
        session_id: None,
    };
    match state.store.add_endpoint(person.identity(), endpoint).await {
        Ok(Some(_)) => {
            render(&state, &person, StatusCode::OK, Happened { key: Some(key), ..Happened::default() }).await
        }
        Ok(None) => {
            form.url.blame(w.fault_many);
            again(&state, &person, Happened { webhook: Some(form), ..Happened::default() }).await
        }
        Err(fault) => unwritten(&person.visit, &fault),
    }
}

/// A channel's secret, and the language in which its messages are read.
fn spoken(secret: &impl Serialize, w: &Words) -> String {
    let secret = serde_json::to_string(secret).unwrap_or_default();
    speaking(&secret, w).unwrap_or(secret)
}

/// The address, where Chips may send to it.
fn check(state: &AppState, field: &mut Field, address: Url, w: &Words) -> Option<Url> {
    match state.outbound.check(&address) {
        Ok(()) => Some(address),
        Err(why) => {
            field.blame(&w.fault_refused.replace("{what}", &why));
            None
        }
    }
}

pub(super) fn cut(name: &str) -> String {
    html::short(name, NAME)
}

/// The endpoint that a form names, of the person's own.
async fn named(state: &AppState, request: Request) -> Result<(Person, Endpoint), Response> {
    let (person, mut fields) = open(state, request).await?;
    let id = fields.take("endpoint").ok().and_then(|id| id.parse::<i64>().ok());
    let (Some(id), Ok(())) = (id, fields.end()) else { return Err(misfit(&person)) };
    match state.store.endpoints(person.identity()).await {
        Ok(known) => match known.into_iter().find(|endpoint| endpoint.endpoint_id == id) {
            Some(endpoint) => Ok((person, endpoint)),
            // It was removed in another window, or is somebody else's.
            None => Err(person.visit.not_found()),
        },
        Err(fault) => Err(person.visit.unreadable(&fault)),
    }
}

/// `POST /settings/told/remove`: removes an endpoint, with what waited for it.
pub(crate) async fn remove(State(state): State<AppState>, request: Request) -> Response {
    let (person, endpoint) = match named(&state, request).await {
        Ok(named) => named,
        Err(response) => return response,
    };
    match state.store.remove_endpoint(person.identity(), endpoint.endpoint_id).await {
        Ok(()) => Redirect::to(ENDPOINTS).into_response(),
        Err(fault) => unwritten(&person.visit, &fault),
    }
}

/// `POST /settings/told/test`: sends a test message, and shows what the other side made of it.
pub(crate) async fn test(State(state): State<AppState>, request: Request) -> Response {
    let (person, endpoint) = match named(&state, request).await {
        Ok(named) => named,
        Err(response) => return response,
    };
    let outcome = state.channels.try_out(&endpoint, &state.config.base_url()).await;
    let tested = Some((endpoint.endpoint_id, outcome));
    render(&state, &person, StatusCode::OK, Happened { tested, ..Happened::default() }).await
}

/// `POST /settings/when`: how the person wants to hear of questions.
pub(crate) async fn set_when(State(state): State<AppState>, request: Request) -> Response {
    let (person, fields) = match open(&state, request).await {
        Ok(open) => open,
        Err(response) => return response,
    };
    let (Some(id), Some(mut form)) = (person_id(&person), WhenForm::read(fields)) else { return misfit(&person) };
    let read = async { Ok((state.store.me(person.identity()).await?, state.store.preferences(id).await?)) };
    let (me, before) = match read.await {
        Ok(read) => read,
        Err(fault) => return person.visit.unreadable(&fault),
    };
    match form.preferences(&state, &me, &before, person.visit.w) {
        Some(preferences) => match state.store.set_preferences(id, preferences).await {
            Ok(()) => Redirect::to(TIMES).into_response(),
            Err(fault) => unwritten(&person.visit, &fault),
        },
        None => again(&state, &person, Happened { when: Some(form), ..Happened::default() }).await,
    }
}

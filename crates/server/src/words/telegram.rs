//! The words of Telegram, and of the part of the settings where a chat is connected.

use super::Count;

/// The words of Telegram.
#[derive(Debug)]
pub(crate) struct Telegram {
    // In a chat
    pub connected: &'static str,
    pub instead: &'static str,
    pub link_over: &'static str,
    pub stranger: &'static str,
    pub which: Count,

    // In the settings
    pub add: &'static str,
    pub hint: &'static str,
    pub make: &'static str,
    pub made: &'static str,
    pub open: &'static str,
    pub elsewhere: &'static str,
    pub again: &'static str,
    pub fault_bot: &'static str,
}

pub(super) const EN: Telegram = Telegram {
    connected: "Connected. {who} is told of questions here from now on, and what is tapped here is {who}’s answer.",
    instead: "{who} is told of nothing here any more.",
    link_over: "This link is not good any more. Make a new one in your settings: {page}",
    stranger: "Nobody is told of anything here. To connect this chat, make a link in your settings: {page}",
    which: Count(
        "Nothing is open. What you write here answers nothing: {page}",
        "One question is open. What you write here does not answer it. Tap an option under it, or answer here: {page}",
        "{n} questions are open. Which one do you mean? What you write here answers none of them. Tap an option under one, or \
         answer here: {page}",
    ),

    add: "Connect Telegram",
    hint: "Questions come as messages of this server’s bot, with their options as buttons. Telegram can read them.",
    make: "Make a link",
    made: "Open it within 15 minutes, and tap Start in Telegram.",
    open: "Open Telegram",
    elsewhere: "Or open it on another device. Give it to nobody: whoever opens it is told in your place.",
    again: "Make another link",
    fault_bot: "Telegram could not be asked: {what}",
};

pub(super) const DE: Telegram = Telegram {
    connected: "Verbunden. {who} erfährt ab jetzt hier von Fragen, und was hier angetippt wird, ist die Antwort von {who}.",
    instead: "{who} erfährt hier nichts mehr.",
    link_over: "Dieser Link gilt nicht mehr. Mach einen neuen in deinen Einstellungen: {page}",
    stranger: "Hier erfährt niemand etwas. Um diesen Chat zu verbinden, mach einen Link in deinen Einstellungen: {page}",
    which: Count(
        "Nichts ist offen. Was du hier schreibst, beantwortet nichts: {page}",
        "Eine Frage ist offen. Was du hier schreibst, beantwortet sie nicht. Tippe eine Option darunter an oder antworte hier: {page}",
        "{n} Fragen sind offen. Welche meinst du? Was du hier schreibst, beantwortet keine davon. Tippe eine Option unter einer an \
         oder antworte hier: {page}",
    ),

    add: "Telegram verbinden",
    hint: "Fragen kommen als Nachrichten des Bots dieses Servers, mit ihren Optionen als Knöpfen. Telegram kann sie lesen.",
    make: "Einen Link machen",
    made: "Öffne ihn innerhalb von 15 Minuten und tippe in Telegram auf Start.",
    open: "Telegram öffnen",
    elsewhere: "Oder öffne ihn auf einem anderen Gerät. Gib ihn niemandem: Wer ihn öffnet, erfährt alles an deiner Stelle.",
    again: "Einen anderen Link machen",
    fault_bot: "Telegram konnte nicht gefragt werden: {what}",
};

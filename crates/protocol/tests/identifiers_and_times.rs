//! Identifiers have one spelling, and times one print.
#![allow(clippy::unwrap_used)]

use std::str::FromStr;

use chips_protocol::{
    AgentId, AskId, EventId, HarnessId, ParticipantId, PersonId, RunId, SpaceId, Timestamp, WorkspaceId,
};
use proptest::prelude::*;

const ULID: &str = "01K4ZQPX000000000000000069";

#[test]
fn only_the_one_spelling_of_an_identifier_is_taken() {
    assert_eq!(EventId::from_str(&format!("evt_{ULID}")).unwrap().to_string(), format!("evt_{ULID}"));
    for text in [
        String::new(),
        ULID.to_owned(),
        "evt_".to_owned(),
        format!("EVT_{ULID}"),
        format!("evt{ULID}"),
        format!("evt-{ULID}"),
        format!("run_{ULID}"),
        format!("evt_{}", ULID.to_lowercase()),
        format!("evt_8{}", "Z".repeat(25)),
        format!("evt_{}", "Z".repeat(26)),
        format!("evt_{}I", &ULID[..25]),
        format!("evt_{}L", &ULID[..25]),
        format!("evt_{}O", &ULID[..25]),
        format!("evt_{}U", &ULID[..25]),
        format!("evt_{}", &ULID[..25]),
        format!("evt_{ULID}0"),
        format!("evt_{ULID}\n"),
        format!(" evt_{ULID}"),
        format!("evt_{ULID}\0"),
        format!("evt_{}\u{FF19}", &ULID[..25]),
        format!("evt_{}\u{FF19}", &ULID[..23]),
        format!("evt_{}-", &ULID[..25]),
    ] {
        assert!(EventId::from_str(&text).is_err(), "{text:?}");
    }
    assert!(EventId::from_str(&format!("evt_7{}", "Z".repeat(25))).is_ok());
}

#[test]
fn a_participant_is_a_person_a_harness_an_agent_or_chips_itself() {
    for text in ["system", "usr_01K4ZQPX000000000000000069", "hrn_01K4ZQPX000000000000000069"] {
        assert_eq!(text.parse::<ParticipantId>().unwrap().to_string(), text);
    }
    for text in ["System", "system ", "ws_01K4ZQPX000000000000000069", "usr_system", ""] {
        assert!(text.parse::<ParticipantId>().is_err(), "{text:?}");
    }
}

#[test]
fn times_are_rfc_3339_and_print_in_utc_with_milliseconds() {
    for (text, printed) in [
        ("2026-09-02T14:22:05.004Z", "2026-09-02T14:22:05.004Z"),
        ("2026-09-02T14:22:05Z", "2026-09-02T14:22:05.000Z"),
        ("2026-09-02t16:22:05.0049+02:00", "2026-09-02T14:22:05.004Z"),
        ("1969-12-31T23:59:59.9999z", "1969-12-31T23:59:59.999Z"),
        ("0000-01-01T00:00:00Z", "0000-01-01T00:00:00.000Z"),
        ("2024-02-29T00:00:00-00:00", "2024-02-29T00:00:00.000Z"),
    ] {
        assert_eq!(text.parse::<Timestamp>().unwrap().to_string(), printed, "{text}");
    }
    for text in [
        "",
        "2026-09-02",
        "2026-09-02T14:22Z",
        "2026-09-02T14:22:05",
        "2026-09-02 14:22:05Z",
        "2026-09-02T14:22:05.Z",
        "2026-09-02T14:22:05,5Z",
        "2026-09-02T14:22:05Z ",
        "2026-09-02T14:22:05+0200",
        "2026-09-02T14:22:05Z[Europe/Berlin]",
        "2026-13-02T14:22:05Z",
        "2026-02-29T14:22:05Z",
        "2026-09-02T25:22:05Z",
        "+002026-09-02T14:22:05Z",
        "0000-01-01T00:00:00+01:00",
        "9999-12-31T23:59:59-23:59",
        "\u{FF12}026-09-02T14:22:05Z",
        "2026-09-02T14:22:05\u{E9}",
        "yesterday",
    ] {
        assert!(text.parse::<Timestamp>().is_err(), "{text:?}");
    }
}

/// The moments that have a print: from the year 0 to a day before the end of 9999.
fn printable_ms() -> std::ops::Range<i64> {
    let first: Timestamp = "0000-01-01T00:00:00Z".parse().unwrap();
    let last: Timestamp = "9999-12-30T00:00:00Z".parse().unwrap();
    first.ms()..last.ms()
}

macro_rules! round_trips {
    ($($test:ident: $id:ty,)*) => {
        proptest! {$(
            #[test]
            fn $test(bytes in any::<[u8; 16]>()) {
                let id = <$id>::from_bytes(bytes);
                let text = id.to_string();
                prop_assert_eq!(text.parse::<$id>().unwrap(), id);
                prop_assert_eq!(id.to_bytes(), bytes);
                prop_assert_eq!(serde_json::to_string(&id).unwrap(), format!("\"{text}\""));
                prop_assert_eq!(serde_json::from_str::<$id>(&format!("\"{text}\"")).unwrap(), id);
                prop_assert_eq!(text.len(), <$id>::PREFIX.len() + 26);
                prop_assert!(text.starts_with(<$id>::PREFIX));
            }
        )*}
    };
}

round_trips! {
    workspace_ids_round_trip: WorkspaceId,
    space_ids_round_trip: SpaceId,
    person_ids_round_trip: PersonId,
    harness_ids_round_trip: HarnessId,
    agent_ids_round_trip: AgentId,
    run_ids_round_trip: RunId,
    event_ids_round_trip: EventId,
    ask_ids_round_trip: AskId,
}

proptest! {
    #[test]
    fn a_text_that_is_taken_for_an_identifier_is_the_one_that_is_printed(text in "evt_[0-9A-Za-z]{25,27}\n?") {
        if let Ok(id) = text.parse::<EventId>() {
            prop_assert_eq!(id.to_string(), text);
        }
    }

    #[test]
    fn identifiers_sort_like_their_texts(one in any::<[u8; 16]>(), other in any::<[u8; 16]>()) {
        let (one, other) = (EventId::from_bytes(one), EventId::from_bytes(other));
        prop_assert_eq!(one.cmp(&other), one.to_string().cmp(&other.to_string()));
    }

    #[test]
    fn times_round_trip(ms in printable_ms()) {
        let time = Timestamp::from_ms(ms);
        let text = time.to_string();
        prop_assert_eq!(text.len(), 24);
        prop_assert_eq!(text.parse::<Timestamp>().unwrap(), time);
        prop_assert_eq!(serde_json::from_str::<Timestamp>(&serde_json::to_string(&time).unwrap()).unwrap(), time);
    }

    #[test]
    fn every_moment_prints_as_a_time_that_can_be_read(ms in any::<i64>()) {
        prop_assert!(Timestamp::from_ms(ms).to_string().parse::<Timestamp>().is_ok());
    }

    #[test]
    fn whatever_the_text_reading_it_never_panics(text in any::<String>()) {
        let _ = text.parse::<Timestamp>();
        let _ = text.parse::<EventId>();
        let _ = text.parse::<ParticipantId>();
    }

    #[test]
    fn whatever_is_nearly_a_time_reading_it_never_panics(text in "[0-9é]{4}-[0-9]{2}-[0-9]{2}T[0-9:]{8}[.0-9Zé+:-]{0,12}") {
        let _ = text.parse::<Timestamp>();
    }
}

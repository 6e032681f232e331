//! A chat, whose messages can be changed and which is one person's.

use chips_core::Who;
use chips_core::notify::{Channel, Kind, Outcome};
use chips_protocol::ParticipantId;

use super::{Scene, another_person, reach};

#[tokio::test]
async fn what_the_other_side_calls_a_message_comes_with_all_that_follow_about_the_ask_at_that_endpoint() {
    let scene = Scene::new().await;
    let person = scene.world.person.clone();
    reach(scene.store(), &person, Channel::Telegram, "7001").await;
    reach(scene.store(), &person, Channel::Ntfy, "topic").await;
    let ask_id = scene.world.asked(scene.run).await;
    scene.plan().await;
    for notice in scene.store().claim_notices(100).await.unwrap() {
        assert_eq!(notice.earlier, [""; 0]);
        let outcome = match notice.endpoint.channel {
            Channel::Telegram => Outcome::AcceptedAs("41".to_owned()),
            _ => Outcome::Accepted,
        };
        scene.record(&notice, outcome).await;
    }
    scene.time.pass_ms(5 * 60_000);
    let notices = scene.store().claim_notices(100).await.unwrap();
    assert_eq!(notices.len(), 2, "it counts as accepted: there are reminders");
    for notice in notices {
        let chat = notice.endpoint.channel == Channel::Telegram;
        assert_eq!(notice.earlier, if chat { vec!["41"] } else { vec![] });
        // What could not be sent has no name, whatever was said.
        scene.record(&notice, Outcome::Failed("99".to_owned())).await;
    }
    scene.answer(ask_id).await;
    scene.plan().await;
    let closed = scene.store().claim_notices(100).await.unwrap();
    let of_chat = closed.iter().find(|notice| notice.endpoint.channel == Channel::Telegram).unwrap();
    assert_eq!((of_chat.kind, of_chat.earlier.as_slice()), (Kind::Closed, ["41".to_owned()].as_slice()));
}

#[tokio::test]
async fn a_chat_is_one_persons_and_is_found_by_its_number() {
    let scene = Scene::new().await;
    let ada = another_person(&scene, "Ada").await;
    let person = scene.world.person.clone();
    let at = async |address: &str| {
        scene.store().endpoint_at(Channel::Telegram, address).await.unwrap().map(|(_, person)| person.sender.who)
    };
    assert_eq!(at("7001").await, None);
    reach(scene.store(), &person, Channel::Telegram, "7001").await;
    reach(scene.store(), &person, Channel::Telegram, "7002").await;
    assert_eq!(at("7001").await, Some(person.sender.who));
    reach(scene.store(), &ada, Channel::Telegram, "7001").await;
    assert_eq!((at("7001").await, at("7002").await), (Some(ada.sender.who), Some(person.sender.who)));
    assert_eq!(scene.store().endpoints(&person).await.unwrap().len(), 1);
    let Who::Person(id) = ada.sender.who else { unreachable!() };
    assert_eq!(scene.store().person(id).await.unwrap().map(|found| found.sender.who), Some(ada.sender.who));
    scene.admin(|admin| admin.disable(ParticipantId::Person(id))).unwrap();
    assert_eq!((at("7001").await, scene.store().person(id).await.unwrap()), (None, None));
}

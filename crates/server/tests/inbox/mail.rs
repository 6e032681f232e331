//! The mails of one question over its whole life, by a clock that is moved by hand.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use chips_core::notify::Channel;
use chips_server::config::{Smtp, SmtpTls, sender};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::support::{App, question, until};

/// A server that takes every mail (RFC 5321, the least of it) and keeps the headers, unfolded.
struct Post {
    address: SocketAddr,
    mails: Arc<Mutex<Vec<Vec<String>>>>,
}

impl Post {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let post = Self { address: listener.local_addr().unwrap(), mails: Arc::default() };
        let mails = Arc::clone(&post.mails);
        tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                tokio::spawn(take(connection, Arc::clone(&mails)));
            }
        });
        post
    }

    async fn wait_for(&self, count: usize) -> Vec<Vec<String>> {
        until("mails", || async { Some(self.mails.lock().unwrap().clone()).filter(|mails| mails.len() >= count) }).await
    }
}

async fn take(connection: TcpStream, mails: Arc<Mutex<Vec<Vec<String>>>>) {
    let mut connection = BufReader::new(connection);
    connection.write_all(b"220 post.test\r\n").await.unwrap();
    let mut line = String::new();
    while connection.read_line(&mut line).await.is_ok_and(|read| read > 0) {
        let reply: &[u8] = match line.get(..4) {
            Some("DATA") => {
                connection.write_all(b"354 go on\r\n").await.unwrap();
                let (mut headers, mut in_head) = (Vec::<String>::new(), true);
                loop {
                    line.clear();
                    connection.read_line(&mut line).await.unwrap();
                    let text = line.trim_end();
                    match text {
                        "." => break,
                        "" => in_head = false,
                        _ if !in_head => {}
                        _ if line.starts_with(' ') => headers.last_mut().unwrap().push_str(text),
                        _ => headers.push(text.to_owned()),
                    }
                }
                mails.lock().unwrap().push(headers);
                b"250 kept\r\n"
            }
            Some("QUIT") => b"221 bye\r\n",
            _ => b"250 good\r\n",
        };
        connection.write_all(reply).await.unwrap();
        line.clear();
    }
}

fn header<'m>(mail: &'m [String], name: &str) -> Option<&'m str> {
    mail.iter().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}

#[tokio::test]
async fn n10_reminders_the_last_call_and_the_outcome_follow_the_question_in_one_thread() {
    let post = Post::start().await;
    let (app, time) = App::by_hand_with(|config| {
        config.smtp = Some(Smtp {
            host: "127.0.0.1".to_owned(),
            port: post.address.port(),
            tls: SmtpTls::None,
            insecure: false,
            username: None,
            password: None,
            from: Some(sender("Chips <chips@chips.test>").unwrap()),
            authorities: None,
        });
    })
    .await;
    app.tell(app.kim, Channel::Email, "kim@example.com", json!({ "lang": "de" })).await;
    let content = json!({
        "questions": [question("when", "Which day?", json!({ "default_value": "19" }))],
        "timeout_seconds": 1800,
    });
    let ask_id = app.ask(content).await;
    // What comes next is planned once it is known what became of this.
    let recorded = async |count: usize| {
        let viewer = app.identity(app.kim);
        until("what became of it", || async {
            let attempts = app.store.attempts(&viewer, ask_id).await.unwrap().unwrap();
            (attempts.len() >= count).then_some(())
        })
        .await;
    };
    let first = post.wait_for(1).await.remove(0);
    let name = header(&first, "Message-ID").unwrap();
    assert_eq!(header(&first, "Subject"), Some("Purchasing fragt: Which day?"));
    assert_eq!((header(&first, "References"), header(&first, "Importance")), (None, None));

    // 5 and 15 minutes; the last call at nine tenths of the time, and the outcome when it is over.
    for (count, minutes) in [(2, 5), (3, 10), (4, 12), (5, 3)] {
        recorded(count - 1).await;
        time.pass_ms(minutes * 60_000 + 1_000);
        let mails = post.wait_for(count).await;
        let mail = &mails[count - 1];
        assert_eq!(header(mail, "Subject"), Some("Re: Purchasing fragt: Which day?"), "{mail:?}");
        assert_eq!((header(mail, "References"), header(mail, "In-Reply-To")), (Some(name), Some(name)));
        assert!(mails[..count - 1].iter().all(|other| header(other, "Message-ID") != header(mail, "Message-ID")));
        assert_eq!(header(mail, "Importance"), (count == 5).then_some("low"));
    }
    recorded(5).await;
    time.pass_ms(3_600_000);
    app.ask(json!({ "questions": [question("when", "Next?", json!({}))] })).await;
    let mails = post.wait_for(6).await;
    assert!(header(&mails[5], "Subject").unwrap().ends_with("Next?"), "nothing more of the first");
}

//! `chips serve --phone`: whether a phone can reach this server over https, and its way in; or how it comes to be reached.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use anyhow::Context;
use chips_client::parts::{in_words, tls_config};
use chips_store::admin::{Admin, SignIn};
use reqwest::redirect::Policy;
use tokio_util::sync::CancellationToken;

use crate::folder::{DEFAULT_LISTEN, Folder};
use crate::place::{Place, owner, phone};
use crate::{output, present};

/// How long the public address may take for its reply, and the pause before it is tried again.
const PATIENCE: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_secs(3);

/// Says whether a phone can reach this server, shows the way in where it can, and what to do where it can't.
///
/// A public address that does not lead here yet is tried until it does: a tunnel may be started after this.
///
/// # Errors
/// Standard output can't be written, or the data folder not be administered.
pub async fn show(folder: &Folder, place: &Place, demo: bool, stop: &CancellationToken) -> anyhow::Result<()> {
    let heading = output::bold("Your phone");
    if !place.url.starts_with("https:") {
        output::text(format_args!("\n{heading}\n\n{}", not_over_https(folder, place)))?;
        // Over plain http it can at least be opened.
        return if place.reachable && !demo { way_in(folder, place) } else { Ok(()) };
    }
    let mut told = None;
    loop {
        match leads_here(&place.url).await {
            Ok(()) => break,
            // The same once more is no news.
            Err(why) if told.as_ref() == Some(&why) => {}
            Err(why) => {
                output::text(format_args!("\n{heading}\n\n{}", not_yet(place, &why)))?;
                told = Some(why);
            }
        }
        tokio::select! {
            () = stop.cancelled() => return Ok(()),
            () = tokio::time::sleep(PAUSE) => {}
        }
    }
    output::text(format_args!("\n{heading}\n\nA phone can reach {}: it answers over https.\n", place.url))?;
    if demo {
        return output::text(format_args!("\n{}\n", home_screen(folder, None)));
    }
    way_in(folder, place)
}

/// A link and a code that sign the first owner in, and how to keep the inbox on the phone. They are shown on a terminal alone.
fn way_in(folder: &Folder, place: &Place) -> anyhow::Result<()> {
    let mut admin = Admin::open(folder.location())?;
    let (_, person) = owner(&mut admin)?.context("there is nobody to sign in; `chips person add` adds somebody")?;
    let again = folder.command(&format!("person link {person}"));
    if !output::is_terminal() {
        return output::text(format_args!("This makes a link that signs you in:\n  {again}\n"));
    }
    let sign_in = admin.link_person(person)?;
    let installs =
        if place.url.starts_with("https:") { home_screen(folder, Some(&again)) } else { another_code(&again) };
    output::text(format_args!("{}\n{installs}\n", entrance(place, &sign_in)))
}

fn entrance(place: &Place, sign_in: &SignIn) -> String {
    let link = present::sign_in_url(&place.url, sign_in);
    let picture = match phone(&link) {
        Some(code) => format!("Scan this:\n\n{code}\n"),
        None => "This terminal is too small for a QR code. ".to_owned(),
    };
    format!(
        "{picture}Or open this on the phone, and type the code {} there (good once, for 15 minutes):\n  {}/sign-in\n",
        output::bold(&sign_in.code),
        place.url,
    )
}

/// How to have it on the home screen.
fn home_screen(folder: &Folder, again: Option<&str>) -> String {
    let again = again.map_or_else(|| folder.command("person link USR"), str::to_owned);
    format!(
        "To keep it on the home screen:\n  \
         Android  the browser's menu, then \"Install app\"\n  \
         iPhone   Share, then \"Add to Home Screen\"; the app starts signed out and takes a code\n\
         {}",
        another_code(&again)
    )
}

fn another_code(again: &str) -> String {
    format!("Another code is made by\n  {again}\n")
}

/// What keeps a phone away where there is no https, and the ways to have it.
fn not_over_https(folder: &Folder, place: &Place) -> String {
    let why = if place.reachable {
        format!(
            "A phone in the same network can open {}, but over plain http: whoever is on that network can read your \
             questions and answer them for you, and a phone installs nothing from there.",
            place.url
        )
    } else {
        format!("A phone can't reach {}: that is this machine alone.", place.url)
    };
    format!("{}\n\n{}", output::fill(&why, output::columns()), recipe(folder, place.address))
}

/// Why a public address does not lead here.
fn not_yet(place: &Place, why: &str) -> String {
    let listening = place.address;
    let why = format!(
        "{} does not lead here yet: {why}. Whatever stands behind it must pass everything on to http://{}, with the name \
         of the host as it came. It is looked for again every {} seconds.",
        place.url,
        near(listening),
        PAUSE.as_secs(),
    );
    let host = place.url.trim_start_matches("https://");
    let ways = ways(listening);
    let way = ways.iter().find(|way| host.ends_with(way.ending)).unwrap_or(&ways[2]);
    let run = way.run.replace(way.host, host);
    format!("{}\n\nIf nothing stands there yet, this does it:\n  {run}\n", output::fill(&why, output::columns()))
}

/// A way to an address with https.
struct Way {
    title: &'static str,
    /// What to run beside the server.
    run: String,
    /// The name that it leads here, or one that stands for it.
    host: &'static str,
    /// What such names end in.
    ending: &'static str,
}

/// The ways to an address with https for a server that listens on this one.
fn ways(address: SocketAddr) -> [Way; 3] {
    let here = near(address);
    // A number alone is that port of 127.0.0.1.
    let target =
        if here.ip() == IpAddr::from([127, 0, 0, 1]) { here.port().to_string() } else { format!("http://{here}") };
    [
        Way {
            title: "Tailscale: your own devices reach it, nobody else does",
            run: format!("tailscale serve --bg {target}"),
            host: "MACHINE.TAILNET.ts.net",
            ending: ".ts.net",
        },
        Way {
            title: "A tunnel: no account; anybody can open it, and its address is another at each start",
            run: format!("cloudflared tunnel --url http://{here}"),
            host: "NAME.trycloudflare.com",
            ending: ".trycloudflare.com",
        },
        Way {
            title: "Caddy: on a server of your own, with a name that leads to it",
            run: format!("caddy reverse-proxy --from chips.example.com --to {here}"),
            host: "chips.example.com",
            ending: "",
        },
    ]
}

/// The ways as lines to copy.
fn recipe(folder: &Folder, address: SocketAddr) -> String {
    let here = near(address).to_string();
    // A proxy comes from this machine; nobody else needs to.
    let listen = if here == DEFAULT_LISTEN { String::new() } else { format!(" --listen {here}") };
    let first = "Three ways to https. Run the first line in another terminal. Then end this with Ctrl-C, and start it again by the \
                 second line, with the address that the first one has shown.";
    let mut text = output::fill(first, output::columns());
    for Way { title, run, host, .. } in ways(address) {
        let again = folder.command(&format!("serve --phone{listen} --public-url https://{host}"));
        text.push_str(&format!("\n\n{}\n  {run}\n  {again}", output::bold(title)));
    }
    text + "\n"
}

/// The address by which this machine reaches the server.
fn near(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V4(v4) if v4.ip().is_unspecified() => SocketAddr::new([127, 0, 0, 1].into(), v4.port()),
        // One that listens on all of IPv6 takes IPv4 too, unless the system says otherwise; its own loopback is sure.
        SocketAddr::V6(v6) if v6.ip().is_unspecified() => {
            SocketAddr::new(std::net::Ipv6Addr::LOCALHOST.into(), v6.port())
        }
        address => address,
    }
}

/// Whether a Chips answers at this address, as far as that shows from this machine; else why not.
async fn leads_here(url: &str) -> Result<(), String> {
    let http = reqwest::Client::builder()
        .user_agent(concat!("chips/", env!("CARGO_PKG_VERSION")))
        .redirect(Policy::none())
        .timeout(PATIENCE)
        .tls_backend_preconfigured(tls_config(true).map_err(|error| error.to_string())?)
        .build()
        .map_err(|error| error.to_string())?;
    let reply = http.get(format!("{url}/healthz")).send().await.map_err(|error| in_words(&error))?;
    let status = reply.status();
    let body = reply.text().await.map_err(|error| in_words(&error))?;
    match status.as_u16() {
        200 if body == "ok\n" => Ok(()),
        421 => Err("the name of the host that arrives here is another (421)".to_owned()),
        502..=504 | 520..=530 => Err(format!("what answers there does not reach Chips ({status})")),
        _ => Err(format!("something else answers there ({status})")),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::near;

    #[test]
    fn a_proxy_beside_the_server_comes_over_loopback() {
        for (listening, reached) in [
            ("127.0.0.1:7070", "127.0.0.1:7070"),
            ("0.0.0.0:8080", "127.0.0.1:8080"),
            ("[::]:8080", "[::1]:8080"),
            ("192.168.1.5:7070", "192.168.1.5:7070"),
        ] {
            assert_eq!(near(listening.parse().unwrap()).to_string(), reached);
        }
    }
}

//! One browser with one window, as a person has it in the hand.

use std::future::Future;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use thirtyfour::error::WebDriverErrorInner;
use thirtyfour::prelude::*;
use thirtyfour::{ChromeCapabilities, ChromiumLikeCapabilities, LoggingPrefsLogLevel};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::devtools::DevTools;
use crate::support::App;

/// The longest that a test waits for a browser, which takes its time on a busy machine.
const LIMIT: Duration = Duration::from_secs(120);
/// The longest that a page takes to load.
const PAGE_WITHIN: Duration = Duration::from_secs(20);

/// What the browsers go by that the tests may use.
const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// A browser. It ends with this value, whatever became of the test.
pub struct Screen {
    pub driver: WebDriver,
    base: String,
    port: u16,
    _chromedriver: Child,
    profile: TempDir,
}

impl Drop for Screen {
    /// Has the driver end the browser before the driver itself is ended. Nothing here can wait for a future.
    fn drop(&mut self) {
        let end = || -> std::io::Result<()> {
            let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
            stream.set_read_timeout(Some(LIMIT))?;
            let request = format!("DELETE /session/{} HTTP/1.1\r\n", self.driver.session_id());
            stream.write_all(format!("{request}Host: localhost\r\nConnection: close\r\n\r\n").as_bytes())?;
            stream.read(&mut [0; 64]).map(drop)
        };
        if let Err(fault) = end() {
            eprintln!("the browser may still run: {fault}");
        }
        // It has ended; the library need not try.
        let _ = self.driver.clone().leak();
    }
}

/// What is special about a browser.
#[derive(Default)]
pub struct Special {
    /// Runs no scripts of pages.
    pub no_scripts: bool,
    /// Runs this before the scripts of a page.
    pub before: Option<&'static str>,
    /// Seconds in which a tap can be undone; none where a test is not about them.
    pub undo: usize,
}

impl Screen {
    /// A browser in which Kim is signed in, by the link and its button.
    pub async fn kim(app: &App) -> Self {
        Self::special(app, Special::default()).await
    }

    /// The same with something special about it.
    pub async fn special(app: &App, special: Special) -> Self {
        let undo = special.undo;
        let screen = Self::start(app, special).await;
        screen.open(&format!("/sign-in/{}", app.way_in(app.kim).secret)).await;
        within(screen.driver.add_cookie(Cookie::new("chips-device", format!("auto.{undo}.on")))).await.unwrap();
        screen.click("form .send").await;
        screen.see("nav").await;
        screen
    }

    /// A browser in which a tap can be undone for so many seconds.
    pub async fn with_undo(app: &App, seconds: usize) -> Self {
        Self::special(app, Special { undo: seconds, ..Special::default() }).await
    }

    /// A browser in which nobody is signed in.
    pub async fn start(app: &App, special: Special) -> Self {
        let binary = BROWSERS
            .into_iter()
            .find_map(in_path)
            .expect("these tests need Chromium: apt-get install chromium chromium-driver (./test does)");
        let (chromedriver, port) = chromedriver().await;
        let profile = tempfile::tempdir().unwrap();
        let mut capabilities = ChromeCapabilities::new();
        capabilities.set_binary(&binary).unwrap();
        for argument in [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-extensions",
            "--disable-sync",
            "--window-size=390,844",
            &format!("--user-data-dir={}", profile.path().display()),
        ] {
            capabilities.add_arg(argument).unwrap();
        }
        if special.no_scripts {
            let off = json!({ "profile.managed_default_content_settings.javascript": 2 });
            capabilities.add_experimental_option("prefs", off).unwrap();
        }
        capabilities.set_browser_log_level(LoggingPrefsLogLevel::All).unwrap();
        let driver = within(WebDriver::new(format!("http://127.0.0.1:{port}"), capabilities)).await.unwrap();
        driver.set_page_load_timeout(PAGE_WITHIN).await.unwrap();
        let screen = Self { driver, base: app.url(""), port, _chromedriver: chromedriver, profile };
        if let Some(source) = special.before {
            let script = json!({ "source": source });
            screen.driver.cdp().send_raw("Page.addScriptToEvaluateOnNewDocument", script).await.unwrap();
        }
        screen
    }

    /// Goes to a page.
    pub async fn open(&self, path: &str) {
        // Where the page before goes somewhere by itself at this moment (a new worker takes it over, say), the driver can wait
        // for a page that was given up. It is asked for again then; what it shows is looked at by what follows.
        for _ in 0..3 {
            match within(self.driver.goto(format!("{}{path}", self.base))).await {
                Err(error) if matches!(error.as_inner(), WebDriverErrorInner::WebDriverTimeout(_)) => {}
                went => return went.unwrap(),
            }
        }
        panic!("{path} does not load");
    }

    /// Runs a script and returns what it returns.
    pub async fn run(&self, script: &str) -> Value {
        within(self.driver.execute(script, Vec::new())).await.unwrap().json().clone()
    }

    /// Waits until an expression of the page is true.
    pub async fn until(&self, expression: &str) {
        let script = format!("return Boolean({expression})");
        let mut ticks = tokio::time::interval(Duration::from_millis(30));
        let look = async {
            loop {
                ticks.tick().await;
                // While a page is left there is nothing to ask.
                if let Ok(found) = self.driver.execute(script.as_str(), Vec::new()).await
                    && found.json() == &json!(true)
                {
                    return;
                }
            }
        };
        if tokio::time::timeout(LIMIT, look).await.is_err() {
            let body = self.run("return document.body.innerText").await;
            panic!("in vain: {expression}\non {:?}:\n{}", self.driver.current_url().await, body.as_str().unwrap_or(""));
        }
    }

    /// Waits until something is there, and returns it.
    pub async fn see(&self, css: &str) -> WebElement {
        self.until(&format!("document.querySelector({})", json!(css))).await;
        self.driver.find(By::Css(css)).await.unwrap()
    }

    /// Waits until these words can be read; what isolates the names in them can't be.
    pub async fn read(&self, words: &str) {
        let read = r"document.body.innerText.replace(/[\u2068\u2069]/g, '')";
        self.until(&format!("{read}.includes({})", json!(words))).await;
    }

    /// Clicks on something, in the middle of the screen: what lies at the edges is under the bars. A card that is replaced at
    /// that moment is looked for again. A page that has just been opened takes no tap yet.
    pub async fn click(&self, css: &str) {
        self.until("performance.now() - performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd > 600")
            .await;
        let mut ticks = tokio::time::interval(Duration::from_millis(30));
        within(async {
            loop {
                ticks.tick().await;
                let it = self.see(css).await;
                self.run(&format!("document.querySelector({})?.scrollIntoView({{ block: 'center' }})", json!(css)))
                    .await;
                if it.click().await.is_ok() {
                    return;
                }
            }
        })
        .await;
    }

    /// Waits until the cards have been still for long enough to take a tap.
    pub async fn settle(&self) {
        self.run("window.still = performance.now()").await;
        self.until("performance.now() - window.still > 450").await;
    }

    /// Presses keys, wherever the focus is.
    pub async fn press(&self, keys: &str) {
        within(self.driver.action_chain().send_keys(keys).perform()).await.unwrap();
    }

    /// Has the browser do something that only it can do.
    pub async fn command(&self, name: &str, parameters: Value) -> Value {
        within(self.driver.cdp().send_raw(name, parameters)).await.unwrap()
    }

    /// The browser's own protocol.
    pub async fn devtools(&self) -> DevTools {
        DevTools::open(self.profile.path()).await
    }

    /// Gives the page the width of this many pixels.
    pub async fn width(&self, width: u32) {
        let metrics = json!({ "width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600 });
        self.command("Emulation.setDeviceMetricsOverride", metrics).await;
    }

    /// Holds that nothing is wider than the page, and that whatever can be tapped is large enough.
    pub async fn fits(&self) {
        let wider = self.run("return document.documentElement.scrollWidth - innerWidth").await;
        assert!(wider.as_i64().unwrap() <= 0, "it scrolls sideways by {wider}");
        let small = "return [...document.querySelectorAll('button, a, select, input:not([type=hidden]), textarea')]
            .filter((it) => it.checkVisibility() && !it.closest('.prompt'))
            .map((it) => [it, it.getBoundingClientRect()])
            .filter(([it, box]) => !it.matches('.skip') && (box.height < 44 || box.width < 44)).map(([it]) => it.outerHTML)";
        assert_eq!(self.run(small).await, json!([]), "everything to tap is large enough");
    }

    /// Types into something.
    pub async fn write(&self, css: &str, text: &str) {
        self.see(css).await.send_keys(text).await.unwrap();
    }

    /// What the browser complains about: blocked requests, errors of scripts.
    pub async fn complaints(&self) -> Vec<String> {
        let log = self.driver.browser_log().await.unwrap();
        log.into_iter().map(|entry| entry.message).collect()
    }
}

/// Waits for something that must come.
pub async fn within<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, future).await.expect("the browser did not answer in time")
}

fn in_path(name: &str) -> Option<String> {
    let paths = std::env::var_os("PATH")?;
    let found = std::env::split_paths(&paths).map(|dir| dir.join(name)).find(|path| path.is_file())?;
    Some(found.display().to_string())
}

/// Starts ChromeDriver on a free port. It ends with the value that is returned.
async fn chromedriver() -> (Child, u16) {
    // It takes a port that is free on IPv4, and gives up where somebody has the same one on IPv6.
    for _ in 0..5 {
        if let Some(started) = within(start_chromedriver()).await {
            return started;
        }
    }
    panic!("chromedriver ended five times without a port")
}

async fn start_chromedriver() -> Option<(Child, u16)> {
    let mut child = Command::new("chromedriver")
        .arg("--port=0")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("these tests need ChromeDriver: apt-get install chromium-driver (./test does)");
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    while let Some(line) = lines.next_line().await.unwrap() {
        if let Some((_, rest)) = line.split_once("started successfully on port ") {
            return Some((child, rest.trim_end_matches('.').parse().unwrap()));
        }
    }
    None
}

//! A real browser, driven over the W3C WebDriver protocol: Debian's Chromium and its driver.
//!
//! One process of the driver and one window a test. What the browser wrote to its console is read
//! at the end of each page; an error there fails the test.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::super::own::client::request;

const DRIVER: &str = "chromedriver";
const CHROMIUM: &str = "/usr/bin/chromium";
/// How long a page may take to do what a test waits for.
const PATIENCE: Duration = Duration::from_secs(30);

/// A window of a browser, until it is dropped.
pub(crate) struct Browser {
    driver: Child,
    address: String,
    session: String,
    _profile: TempDir,
}

impl Browser {
    /// Starts one; `None` after recording that there is none on this machine.
    pub(crate) fn start() -> Option<Self> {
        let driver = Command::new(DRIVER).arg("--port=0").stdout(Stdio::piped()).spawn();
        let (Ok(mut driver), true) = (driver, std::path::Path::new(CHROMIUM).exists()) else {
            varve_testdata::skip("no Chromium; install the packages chromium and chromium-driver");
            return None;
        };
        let lines = BufReader::new(driver.stdout.take().unwrap()).lines();
        let port = lines.map(Result::unwrap).find_map(|line| {
            let port = line.split("successfully on port ").nth(1)?;
            Some(port.trim_end_matches('.').to_owned())
        });
        let address = format!("127.0.0.1:{}", port.unwrap());
        let profile = tempfile::tempdir().unwrap();
        let mut browser = Self { driver, address, session: String::new(), _profile: profile };
        browser.open_session();
        Some(browser)
    }

    fn open_session(&mut self) {
        let folder = format!("--user-data-dir={}", self._profile.path().display());
        let args = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            folder.as_str(),
        ];
        let options = json!({ "binary": CHROMIUM, "args": args });
        let wanted = json!({ "capabilities": { "alwaysMatch": {
            "goog:chromeOptions": options, "goog:loggingPrefs": { "browser": "ALL" } } } });
        let found = self.call("POST", "/session", &wanted);
        self.session = found["sessionId"].as_str().unwrap().to_owned();
    }

    fn call(&self, method: &str, path: &str, body: &Value) -> Value {
        let body = if method == "POST" { body.to_string() } else { String::new() };
        let json = [("content-type", "application/json")];
        let response = request(&self.address, method, path, &json, body.as_bytes());
        let answer = response.json();
        assert_eq!(response.status, 200, "{path}: {answer}");
        answer["value"].clone()
    }

    fn command(&self, name: &str, body: &Value) -> Value {
        self.call("POST", &format!("/session/{}/{name}", self.session), body)
    }

    /// Opens an address and waits until its page is drawn.
    pub(crate) fn open(&self, url: &str) {
        self.command("url", &json!({ "url": url }));
        self.wait("return document.getElementById('main').dataset.ready === location.pathname");
    }

    /// What a script returns.
    pub(crate) fn run(&self, script: &str) -> Value {
        self.command("execute/sync", &json!({ "script": script, "args": [] }))
    }

    /// Waits until a script returns something true.
    pub(crate) fn wait(&self, script: &str) {
        let end = Instant::now() + PATIENCE;
        while self.run(script) != Value::Bool(true) {
            assert!(Instant::now() < end, "this never became true: {script}\n{}", self.text());
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// All text of the page.
    pub(crate) fn text(&self) -> String {
        self.run("return document.body.innerText").as_str().unwrap().to_owned()
    }

    /// Presses keys one after the other, wherever the focus is.
    pub(crate) fn press(&self, keys: &str) {
        let strokes: Vec<Value> = keys
            .chars()
            .flat_map(|key| ["keyDown", "keyUp"].map(|kind| json!({ "type": kind, "value": key })))
            .collect();
        self.command(
            "actions",
            &json!({ "actions": [{ "type": "key", "id": "keys", "actions": strokes }] }),
        );
    }

    /// A command of the browser's own protocol.
    fn emulate(&self, command: &str, params: &Value) {
        self.command("goog/cdp/execute", &json!({ "cmd": command, "params": params }));
    }

    pub(crate) fn size(&self, width: u32, height: u32) {
        self.emulate(
            "Emulation.setDeviceMetricsOverride",
            &json!({
                "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600
            }),
        );
    }

    pub(crate) fn colours(&self, scheme: &str) {
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.emulate("Emulation.setEmulatedMedia", &json!({ "features": features }));
    }

    /// Fails if the page has written an error or a warning to the console since the last time.
    pub(crate) fn check_console(&self, at: &str) {
        let lines = self.command("se/log", &json!({ "type": "browser" }));
        let bad = |line: &&Value| line["level"] == "SEVERE" || line["level"] == "WARNING";
        let bad: Vec<&Value> = lines.as_array().unwrap().iter().filter(bad).collect();
        assert!(bad.is_empty(), "{at}: {bad:?}");
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if !self.session.is_empty() && !thread::panicking() {
            self.call("DELETE", &format!("/session/{}", self.session), &Value::Null);
        }
        // Ending the driver ends the browser; one that is gone already is no failure.
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

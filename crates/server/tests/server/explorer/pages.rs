//! Every page in a browser: what it shows, how it moves, and that everybody can use it.

use varve::types::{Block as Parsed, address};
use varve_sim::Block;

use super::super::own::rig::{NETWORK, Rig, SHARED, blocks};
use super::browser::Browser;

/// Things a page must not have, found by a script: what has no name, what breaks the order of
/// headings, what repeats an id, what is wider than the window.
const FAULTS: &str = include_str!("faults.js");

/// Texts whose contrast with their ground is below 4.5, or 3 where they are large.
const FAINT: &str = include_str!("faint.js");

/// How far content has jumped since the page was opened.
const JUMPS: &str = "return new Promise((done) => { let sum = 0; \
    new PerformanceObserver((list) => { for (const e of list.getEntries()) sum += e.value; }) \
    .observe({ type: 'layout-shift', buffered: true }); setTimeout(() => done(sum), 50); })";

/// A block with transactions, the largest of them, and an address that it pays.
fn interesting(rig: &Rig) -> (&Block, String, String) {
    let block = rig.blocks.iter().rfind(|block| !block.stale).unwrap();
    let parsed = Parsed::parse(&block.bytes, NETWORK.format()).unwrap();
    let tx = parsed.txs().iter().skip(1).max_by_key(|tx| tx.outputs().count()).unwrap();
    let mut outputs = tx.outputs();
    let shown = outputs.find_map(|output| address::encode(output.script, NETWORK)).unwrap();
    (block, tx.txid().to_string(), shown)
}

/// The pages, and a text that each must show.
fn pages(rig: &Rig) -> Vec<(String, String)> {
    let (block, txid, shown) = interesting(rig);
    let stale = rig.blocks.iter().rfind(|block| block.stale).unwrap();
    let tail = |text: &str| text[text.len() - 8..].to_owned();
    vec![
        ("/".to_owned(), format!("{}", block.height)),
        ("/blocks".to_owned(), tail(&block.hash.to_string())),
        (format!("/block/{}", block.hash), "1 confirmation".to_owned()),
        (format!("/block/{}", stale.hash), "not in the chain".to_owned()),
        (format!("/tx/{txid}"), tail(&shown)),
        (format!("/address/{shown}"), tail(&txid)),
        ("/mempool".to_owned(), "Lowest rate taken".to_owned()),
        ("/forks".to_owned(), tail(&stale.hash.to_string())),
        ("/set".to_owned(), "MuHash".to_owned()),
        ("/sediment".to_owned(), "Window".to_owned()),
    ]
}

#[test]
fn every_page_is_drawn_and_everybody_can_use_it() {
    let Some(browser) = Browser::start() else { return };
    let rig = &*SHARED;
    let none = serde_json::json!([]);
    for (path, text) in pages(rig) {
        for (width, scheme) in [(1280, "light"), (1280, "dark"), (360, "light")] {
            browser.size(width, 800);
            browser.colours(scheme);
            browser.open(&format!("http://{}{path}", rig.address));
            let at = format!("{path} at {width} in {scheme}");
            assert!(browser.text().contains(&text), "{at} lacks {text}:\n{}", browser.text());
            assert_eq!(browser.run(FAULTS), none, "{at}");
            assert_eq!(browser.run(FAINT), none, "{at}");
            let jumps = browser.run(JUMPS).as_f64().unwrap();
            assert!(jumps < 0.1, "{at} jumps by {jumps}");
            browser.check_console(&at);
        }
    }
}

#[test]
fn search_is_used_by_the_keyboard_alone() {
    const ARROW_DOWN: &str = "\u{e015}";
    const ENTER: &str = "\u{e007}";
    const ESCAPE: &str = "\u{e00c}";
    let Some(browser) = Browser::start() else { return };
    let rig = &*SHARED;
    browser.size(1280, 800);
    browser.open(&format!("http://{}/", rig.address));
    browser.press("/");
    assert_eq!(browser.run("return document.activeElement.id"), "q");
    browser.press("14");
    browser.wait("return document.querySelectorAll('#hits [role=option]').length === 2");
    assert_eq!(
        browser.run("return document.getElementById('q').getAttribute('aria-expanded')"),
        "true"
    );
    let chosen = "return document.getElementById(document.getElementById('q')\
        .getAttribute('aria-activedescendant')).querySelector('.hit-name').textContent";
    assert_eq!(browser.run(chosen), "14");
    browser.press(ARROW_DOWN);
    assert_eq!(browser.run(chosen), "140");
    browser.press(ENTER);
    browser.wait("return document.title.startsWith('Block 140')");
    assert_eq!(browser.run("return document.activeElement.id"), "main");
    browser.press("/zzzz");
    browser.wait("return document.querySelector('.hit-none') !== null");
    browser.press(ESCAPE);
    browser.wait("return document.getElementById('hits').hidden");
    let (_, txid, _) = interesting(rig);
    browser.run("document.getElementById('q').value = ''");
    browser.press(&txid);
    browser.press(ENTER);
    browser.wait(&format!("return location.pathname === '/tx/{txid}'"));
    browser.run("history.back()");
    browser.wait("return document.title.startsWith('Block 140')");
    browser.check_console("search");
}

#[test]
fn a_new_block_appears_without_a_jump() {
    let Some(browser) = Browser::start() else { return };
    let chain: Vec<Block> = blocks(40, 12).into_iter().filter(|block| !block.stale).collect();
    let rig = Rig::new(chain[..30].to_vec());
    browser.size(1280, 800);
    browser.open(&format!("http://{}/", rig.address));
    browser.wait("return document.getElementById('state').dataset.state === 'live'");
    let top = "return document.querySelector('.stratum .stratum-height').textContent";
    assert_eq!(browser.run(top), "29");
    let layers = "return document.querySelector('.strata').getBoundingClientRect().height";
    let before = browser.run(layers);
    rig.sync(&chain[30..32]);
    browser.wait("return document.querySelector('.stratum .stratum-height').textContent === '31'");
    assert_eq!(browser.run("return document.getElementById('news').textContent"), "New block 31");
    assert_eq!(browser.run(layers), before);
    let jumps = browser.run(JUMPS).as_f64().unwrap();
    assert!(jumps < 0.1, "the page jumps by {jumps}");
    rig.node.invalidate(chain[31].hash).unwrap();
    browser.wait("return document.querySelector('.stratum .stratum-height').textContent === '30'");
    browser.check_console("the start page");
}

#[test]
fn colours_are_chosen_and_kept() {
    let Some(browser) = Browser::start() else { return };
    let ground = "return getComputedStyle(document.body).backgroundColor";
    let url = format!("http://{}/forks", SHARED.address);
    browser.colours("light");
    browser.open(&url);
    let light = browser.run(ground);
    browser.run("document.getElementById('theme').click()");
    let dark = browser.run(ground);
    assert_ne!(light, dark);
    browser.open(&url);
    assert_eq!(browser.run(ground), dark, "the choice is kept");
    assert_eq!(browser.run("return document.getElementById('theme').ariaLabel"), "Colours: dark");
    browser.run("document.getElementById('theme').click()");
    assert_eq!(browser.run(ground), light);
}

#[test]
fn markup_in_a_coinbase_is_text() {
    let Some(browser) = Browser::start() else { return };
    browser.open(&format!("http://{}/blocks", SHARED.address));
    let drawn = "const { el } = await import('/assets/dom.js'); \
        const node = el('p', { title: '<b>' }, '<img src=x onerror=alert(1)>'); \
        return [node.children.length, node.textContent]";
    let found = browser.run(&format!("return (async () => {{ {drawn} }})()"));
    assert_eq!(found, serde_json::json!([0, "<img src=x onerror=alert(1)>"]));
    browser.check_console("blocks");
}

//! The explorer: what it consists of, and its pages in a real browser.

mod browser;
mod pages;

use super::own::client::{get, request};
use super::own::rig::SHARED;

#[test]
fn every_address_of_the_explorer_is_the_page() {
    let rig = &*SHARED;
    let hash = "0".repeat(64);
    let pages = [
        "/blocks".to_owned(),
        "/block/7".to_owned(),
        format!("/tx/{hash}"),
        "/address/bcrt1qqqq".to_owned(),
        format!("/script/{hash}"),
        "/mempool".to_owned(),
        "/forks".to_owned(),
        "/set".to_owned(),
        "/sediment".to_owned(),
    ];
    let home = request(&rig.address, "GET", "/", &[("accept", "text/html")], &[]);
    for path in pages {
        let page = get(&rig.address, &path);
        assert_eq!((page.status, &page.body), (200, &home.body), "{path}");
        assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
        let policy = page.header("content-security-policy").unwrap();
        for part in ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"] {
            assert!(policy.contains(part), "{policy}");
        }
        assert!(!policy.contains("unsafe") && !policy.contains("http"));
        assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
    }
}

#[test]
fn assets_have_their_types_and_are_known_by_their_bytes() {
    let rig = &*SHARED;
    let page = String::from_utf8(get(&rig.address, "/blocks").body).unwrap();
    let names = page.split("\"/assets/").skip(1).map(|rest| rest.split('"').next().unwrap());
    let names: Vec<&str> = names.chain(["block.js", "tx.js", "chart.js", "sediment.js"]).collect();
    assert!(names.len() > 8);
    for name in names {
        let path = format!("/assets/{name}");
        let asset = get(&rig.address, &path);
        let kind = match name.rsplit('.').next().unwrap() {
            "js" => "text/javascript; charset=utf-8",
            "css" => "text/css; charset=utf-8",
            _ => "image/svg+xml",
        };
        assert_eq!((asset.status, asset.header("content-type")), (200, Some(kind)), "{name}");
        let etag = asset.header("etag").unwrap();
        assert!(etag.starts_with('"') && etag.len() > 20);
        let again = request(&rig.address, "GET", &path, &[("if-none-match", etag)], &[]);
        assert_eq!((again.status, again.body.len()), (304, 0), "{name}");
    }
    assert_eq!(get(&rig.address, "/assets/missing.js").status, 404);
}

//! The explorer: one page, its styles and its scripts, served from the binary.
//!
//! The page finds out from its address what to show and asks the own API for it, so every address
//! of the explorer is answered with the same page. Nothing is fetched from elsewhere, and the
//! content security policy allows nothing else: no script but ours runs, whatever a coinbase or an
//! `OP_RETURN` says.
//!
//! An asset is known by the hash of its bytes (`etag`); a browser asks again each time and gets a
//! 304, so a new version of the program is seen at once.

use axum::Router;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use varve::types::sha256d;

/// Scripts and styles of our own, answers of our own server, and nothing from elsewhere.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
    connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const JS: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";

/// The page.
const PAGE: Asset =
    Asset { name: "index.html", kind: HTML, bytes: include_bytes!("explorer/index.html") };

macro_rules! assets {
    ($($name:literal $kind:ident),* $(,)?) => {
        &[$(Asset {
            name: $name,
            kind: $kind,
            bytes: include_bytes!(concat!("explorer/", $name)),
        }),*]
    };
}

/// What the page consists of, below `/assets/`.
const ASSETS: &[Asset] = assets![
    "address.js" JS, "api.js" JS, "app.js" JS, "block.js" JS, "chart.js" JS, "dom.js" JS,
    "format.js" JS, "forks.js" JS, "home.js" JS, "mempool.js" JS, "search.js" JS,
    "sediment.js" JS, "set.js" JS, "strata.js" JS, "theme.js" JS, "title.js" JS, "tx.js" JS,
    "waiting.js" JS, "varve.css" CSS, "pages.css" CSS, "varve.svg" SVG,
];

/// Addresses of the explorer beside `/`, which `http` shares with Conduit's clients.
const PAGES: &[&str] = &[
    "/blocks",
    "/block/{id}",
    "/tx/{txid}",
    "/address/{id}",
    "/script/{id}",
    "/mempool",
    "/forks",
    "/set",
    "/sediment",
];

/// A file that is part of the program.
#[derive(Clone, Copy, Debug)]
struct Asset {
    name: &'static str,
    kind: &'static str,
    bytes: &'static [u8],
}

/// The routes of the pages and of what they consist of.
pub(crate) fn router<S: Clone + Send + Sync + 'static>() -> Router<S> {
    let mut router = Router::new();
    for asset in ASSETS {
        let etag = asset.etag();
        let answer = move |headers: HeaderMap| async move { asset.answer(&headers, &etag) };
        router = router.route(&format!("/assets/{}", asset.name), get(answer));
    }
    let etag = PAGE.etag();
    for page in PAGES {
        let etag = etag.clone();
        let answer = move |headers: HeaderMap| async move { PAGE.answer(&headers, &etag) };
        router = router.route(page, get(answer));
    }
    router
}

/// The page, for a browser that asks for `/`.
pub(crate) fn index(headers: &HeaderMap) -> Response {
    PAGE.answer(headers, &PAGE.etag())
}

impl Asset {
    fn etag(&self) -> HeaderValue {
        let hash = varve::BlockHash::from_bytes(sha256d(self.bytes)).to_string();
        let text = format!("\"{}\"", hash.get(..32).unwrap_or(&hash));
        HeaderValue::from_str(&text).expect("hexadecimal digits in quotes are a header's value")
    }

    fn answer(&self, headers: &HeaderMap, etag: &HeaderValue) -> Response {
        let known = headers.get(header::IF_NONE_MATCH).and_then(|known| known.to_str().ok());
        let is_known = known.is_some_and(|known| {
            known.split(',').any(|one| one.trim().as_bytes() == etag.as_bytes())
        });
        let (status, body) = if is_known {
            (StatusCode::NOT_MODIFIED, &[][..])
        } else {
            (StatusCode::OK, self.bytes)
        };
        let headers: [(HeaderName, HeaderValue); 7] = [
            (header::CONTENT_TYPE, HeaderValue::from_static(self.kind)),
            (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
            (header::ETAG, etag.clone()),
            (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
            (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
            (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
            (
                HeaderName::from_static("cross-origin-opener-policy"),
                HeaderValue::from_static("same-origin"),
            ),
        ];
        (status, headers, body).into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No asset names anything outside of the server, and none turns text into markup. The only
    /// address is the name of the SVG namespace, which is never fetched.
    #[test]
    fn assets_name_nothing_outside() {
        for asset in ASSETS.iter().chain([&PAGE]) {
            let text = std::str::from_utf8(asset.bytes).unwrap();
            let text = text.replace("http://www.w3.org/2000/svg", "");
            for outside in ["http:", "https:", "//cdn", "@import", "url(//"] {
                assert!(!text.contains(outside), "{} has {outside}", asset.name);
            }
            for markup in
                ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("]
            {
                assert!(!text.contains(markup), "{} has {markup}", asset.name);
            }
        }
    }

    /// Every file of the folder is served, and whatever one names of the others is there.
    #[test]
    fn the_table_has_every_file_and_every_name() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/explorer");
        let files = std::fs::read_dir(folder).unwrap();
        let mut files: Vec<String> =
            files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        files.sort_unstable();
        let mut table: Vec<&str> = ASSETS.iter().chain([&PAGE]).map(|asset| asset.name).collect();
        table.sort_unstable();
        assert_eq!(files, table);
        for asset in ASSETS.iter().chain([&PAGE]) {
            let text = std::str::from_utf8(asset.bytes).unwrap();
            let imports =
                text.split("from './").skip(1).map(|rest| rest.split('\'').next().unwrap());
            let links =
                text.split("\"/assets/").skip(1).map(|rest| rest.split('"').next().unwrap());
            for name in imports.chain(links) {
                assert!(table.contains(&name), "{} names {name}", asset.name);
            }
        }
    }

    #[test]
    fn a_known_asset_is_not_sent_again() {
        let etag = PAGE.etag();
        let mut headers = HeaderMap::new();
        assert_eq!(PAGE.answer(&headers, &etag).status(), StatusCode::OK);
        headers.insert(header::IF_NONE_MATCH, etag.clone());
        let answer = PAGE.answer(&headers, &etag);
        assert_eq!(answer.status(), StatusCode::NOT_MODIFIED);
        assert_eq!(answer.headers().get(header::ETAG), Some(&etag));
        headers.insert(header::IF_NONE_MATCH, HeaderValue::from_static("\"other\""));
        assert_eq!(PAGE.answer(&headers, &etag).status(), StatusCode::OK);
    }
}

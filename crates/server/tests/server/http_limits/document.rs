//! The OpenAPI document: it has every route, its page needs nothing from elsewhere, and a program
//! that tries it by chance finds no answer that it does not describe.

use std::process::Command;

use serde_json::Value;

use super::limited;
use varve_server::http::HttpLimits;

#[test]
fn every_path_of_the_document_is_there() {
    let server = limited(HttpLimits::default());
    let mut client = server.client();
    let document = client.json("/api/openapi.json");
    let paths = document["paths"].as_object().unwrap();
    assert!(paths.len() > 60, "{} paths", paths.len());
    // A stream of events has no end to wait for.
    for (path, methods) in paths.iter().filter(|(path, _)| !path.ends_with("/events")) {
        for (method, operation) in methods.as_object().unwrap() {
            let asked = path
                .replace("{txid}", &"0".repeat(64))
                .replace("{last_seen_txid}", &"0".repeat(64))
                .replace("{hash}", &"0".repeat(64))
                .replace(['{', '}'], "");
            let reply = client.send(&method.to_uppercase(), &asked, &[], b"");
            let is_missing = reply.status == 404 && reply.text().contains("does not exist");
            assert!(!is_missing && reply.status != 405 && reply.status < 500, "{method} {asked}");
            let described = &operation["responses"][reply.status.to_string()];
            assert!(described.is_object(), "{method} {asked} answers {}", reply.status);
        }
    }
}

#[test]
fn the_page_needs_nothing_from_elsewhere() {
    let server = limited(HttpLimits::default());
    let reply = server.client().get("/api/docs");
    assert_eq!(reply.status, 200);
    let page = reply.text();
    assert!(!page.contains("http://") && !page.contains("https://") && !page.contains("src="));
    assert!(reply.header("content-security-policy").contains("default-src 'none'"));
}

/// schemathesis (PyPI) sends what the document allows and what it does not.
#[test]
fn schemathesis_finds_no_violation() {
    let Some(program) = std::env::var_os("SCHEMATHESIS_EXE") else {
        let reason = "SCHEMATHESIS_EXE is not set; \
                      python3 -m venv v && v/bin/pip install schemathesis makes v/bin/schemathesis";
        return varve_testdata::skip(reason);
    };
    let server = limited(HttpLimits::default());
    let folder = tempfile::tempdir().unwrap();
    let checks = "not_a_server_error,status_code_conformance,content_type_conformance,\
                  response_schema_conformance";
    let ran = Command::new(program)
        .current_dir(folder.path())
        .arg("run")
        .arg(format!("http://{}/api/openapi.json", server.address))
        .args(["--checks", checks, "--max-examples", "25", "--seed", "7", "--no-color"])
        .args(["--phases", "examples,coverage,fuzzing"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{text}\n{}", String::from_utf8_lossy(&ran.stderr));
    let _: Value = server.client().json("/api/mempool");
}

//! A node by its own interface, as a server of the test plays it: deep reorganisations, batches,
//! and every way in which a node can be gone, busy or none.

use std::net::TcpListener;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use varve_node::source::SourceError;
use varve_node::source::directory::Directory;
use varve_node::source::rpc::{Login, Rpc, Settings};
use varve_node::{Event, Organizer, Report, Source as _, SyncOptions, Verify};
use varve_testdata::rpc_server::{Reaction, Request, RpcServer, Served, reply};
use varve_types::Network;

use crate::miner::{Mined, bytes_of, young_options};
use crate::rig::{disk, framed, pipe, sync, sync_options};

/// A busy machine does within this what an idle one does at once. It is less than the minute after
/// which a request is given up.
const SOON: Duration = Duration::from_secs(30);

/// Connects to a node of regtest.
pub(crate) fn rpc(address: String, login: Login, follow: bool) -> Result<Rpc, SourceError> {
    let begin = Instant::now();
    let clock = Arc::new(move || begin.elapsed());
    Rpc::connect(Settings { address, network: Network::Regtest, login, follow, clock })
}

fn password() -> Login {
    Login::Password { user: "user".to_owned(), password: "password".to_owned() }
}

/// Genesis and these blocks, as a server has them.
fn served<'a>(blocks: impl IntoIterator<Item = &'a Mined>) -> Vec<Served> {
    let served = |block: &Mined| (block.hash.to_string(), block.bytes.clone());
    [served(&Mined::genesis())].into_iter().chain(blocks.into_iter().map(served)).collect()
}

fn options() -> SyncOptions {
    SyncOptions { verify: Verify::Spends, all_branches: false, ..sync_options() }
}

/// The first `keep` blocks of a chain, and `count` others above them. Their coinbases take nothing,
/// so there is no height at which it is too much.
fn branch(chain: &[Mined], keep: usize, salt: u8, count: usize) -> Vec<Mined> {
    let mut blocks = chain[..keep].to_vec();
    for _ in 0..count {
        let parent = blocks.last().cloned().unwrap_or_else(Mined::genesis);
        let mut draft = parent.draft(salt, Vec::new());
        draft.txs[0].outputs[0].value = 0;
        blocks.push(parent.mine(draft));
    }
    blocks
}

fn chain(salt: u8, count: usize) -> Vec<Mined> {
    branch(&[], 0, salt, count)
}

/// Reorganisations of 140, of 2,100 and of 2,500 blocks, down to genesis.
#[test]
fn a_reorganisation_of_any_depth_is_followed() {
    let first = chain(1, 2500);
    let second = branch(&first, 2360, 2, 150);
    let third = branch(&second, 410, 3, 2101);
    let last = chain(4, 4500);
    for rest in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let mut node = Organizer::open(disk(folder.path()), young_options()).unwrap();
        let server = RpcServer::start(rest, &served(&first));
        let login = || if rest { Login::Nobody } else { password() };
        for blocks in [&first, &second, &third, &last] {
            server.set_chain(&served(blocks));
            let mut source = rpc(server.address(), login(), false).unwrap();
            assert_eq!(sync(&mut node, &mut source, &options()).unwrap(), []);
            assert_eq!(node.snapshot().tip.1, blocks[blocks.len() - 1].hash, "rest {rest}");
            check_requests(&server, rest);
        }
        node.verify(&mut |_, _| {}).unwrap();
    }
}

/// Nothing is asked for twice, and calls go in batches.
fn check_requests(server: &RpcServer, rest: bool) {
    let requests = server.requests();
    if rest {
        let headers = requests.iter().filter(|request| request.line.contains("headers/2000/"));
        assert!(headers.count() <= 5, "a walk of at most 4500 headers, and its end");
        return;
    }
    let batches = |method: &str| -> Vec<usize> {
        let is_it = |request: &&Request| request.methods.first().is_some_and(|m| m == method);
        requests.iter().filter(is_it).map(|request| request.methods.len()).collect()
    };
    assert!(batches("getblockhash").len() <= 12);
    assert!(batches("getblockheader").len() <= 12);
    let blocks: usize = batches("getblock").iter().sum();
    assert!(batches("getblock").len() * 4 <= blocks.max(64), "{blocks} blocks in batches");
    assert!(requests.iter().all(|request| request.methods.len() <= 501), "batches are bounded");
}

#[test]
fn a_branch_from_genesis_in_a_folder_is_followed() {
    let (first, last) = (chain(1, 2500), chain(4, 4500));
    let folder = tempfile::tempdir().unwrap();
    let (data, files) = (folder.path().join("data"), folder.path().join("files"));
    std::fs::create_dir_all(&data).unwrap();
    std::fs::create_dir_all(&files).unwrap();
    let mut node = Organizer::open(disk(&data), young_options()).unwrap();
    for (number, blocks) in [&first, &last].into_iter().enumerate() {
        let file = framed(Network::Regtest, &bytes_of(blocks));
        std::fs::write(files.join(format!("blk{number:05}.dat")), file).unwrap();
        let mut source = Directory::open(&files, Network::Regtest, false).unwrap();
        sync(&mut node, &mut source, &options()).unwrap();
        assert_eq!(node.snapshot().tip.1, blocks[blocks.len() - 1].hash);
    }
}

/// The chain changes after the first batch of headers was given.
#[test]
fn a_reorganisation_in_the_middle_of_the_walk() {
    let first = chain(1, 3000);
    let second = branch(&first, 1500, 2, 1600);
    for rest in [true, false] {
        let server = RpcServer::start(rest, &served(&first));
        let (mut headers, second) = (0, second.clone());
        let last = second[second.len() - 1].hash;
        server.answer_with(move |request| {
            headers += usize::from(request.line.contains("headers/2000/"));
            headers += usize::from(request.methods.iter().any(|method| method == "getblockhash"));
            // By calls: between the hashes and the headers of the second batch.
            let swap = headers == 2 && (rest || request.methods[0] == "getblockheader");
            match swap {
                true => {
                    headers += 1;
                    Reaction::Switch(served(&second))
                }
                false => Reaction::Serve,
            }
        });
        let login = if rest { Login::Nobody } else { password() };
        let mut source = rpc(server.address(), login, false).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let mut node = Organizer::open(disk(folder.path()), young_options()).unwrap();
        sync(&mut node, &mut source, &options()).unwrap();
        assert_eq!(node.snapshot().tip.1, last, "rest {rest}");
    }
}

/// What a node says when it does not serve us, and the sentence that it becomes.
#[test]
fn what_is_no_node_or_refuses_is_said_at_once() {
    let too_long = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", 1_u64 << 40);
    let long_chunk = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffff\r\n";
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let some = [
        (reply(401, b""), "refuses the login; check user and password"),
        (reply(403, b""), "allow it with -rpcallowip"),
        (reply(200, b"<html><h1>hello</h1>"), "no JSON-RPC (<html><h1>hello</h1>)"),
        (reply(404, b""), "status 404"),
        (reply(200, b"[]"), "did not answer every call"),
        (reply(200, b"[1, null, {}]"), "did not answer every call"),
        (reply(200, b"{\"error\": {\"code\": -32601, \"message\": \"what?\"}}"), "what?"),
        (reply(200, deep.as_bytes()), "no JSON-RPC"),
        (too_long.into_bytes(), "longer than any block"),
        (long_chunk.as_bytes().to_vec(), "longer than any block"),
        (b"SSH-2.0-OpenSSH\r\n".to_vec(), "not HTTP"),
    ];
    for (answer, reason) in some {
        let server = RpcServer::start(false, &served(&[]));
        server.answer_with(move |request| match request.line.as_str() {
            "POST /" => Reaction::Raw(answer.clone()),
            _ => Reaction::Serve,
        });
        for follow in [false, true] {
            let begin = Instant::now();
            let error = rpc(server.address(), password(), follow).err().unwrap().to_string();
            assert!(error.contains(reason) && error.contains(&server.address()), "{error}");
            assert!(begin.elapsed() < SOON, "{error}");
        }
    }
    let server = RpcServer::start(false, &served(&[]));
    let error = rpc(server.address(), Login::Nobody, false).err().unwrap().to_string();
    assert!(error.contains("-rest=1"), "{error}");
    let other = ("11".repeat(32), Network::Signet.genesis_block());
    for rest in [true, false] {
        let server = RpcServer::start(rest, std::slice::from_ref(&other));
        server.set_network("signet");
        let error = rpc(server.address(), password(), false).err().unwrap().to_string();
        assert!(error.contains("of signet, not of regtest; pass --network signet"), "{error}");
    }
}

/// Nobody listens; somebody accepts and says nothing; somebody hangs up.
#[test]
fn a_node_that_is_not_there_is_said_within_three_seconds() {
    let nobody = "127.0.0.1:1".to_owned();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let rude = RpcServer::start(false, &served(&[]));
    rude.answer_with(|_| Reaction::Raw(Vec::new()));
    let silent_address = silent.local_addr().unwrap().to_string();
    for address in [nobody, silent_address, rude.address()] {
        let refused_in = || {
            let begin = Instant::now();
            let error = rpc(address.clone(), password(), false).err().unwrap().to_string();
            assert!(error.contains(&address) && error.contains("--follow"), "{error}");
            begin.elapsed()
        };
        // One that follows goes on, and says so once.
        let warned_in = || {
            let begin = Instant::now();
            let mut source = rpc(address.clone(), password(), true).unwrap();
            source.seek(&[Network::Regtest.genesis_hash()]).unwrap();
            let (mut warnings, mut warned_at) = (Vec::new(), Duration::MAX);
            while begin.elapsed() < warned_at.saturating_add(Duration::from_secs(2)) {
                match source.next_event(Duration::from_millis(100)).unwrap() {
                    Event::Warning(warning) => {
                        warned_at = warned_at.min(begin.elapsed());
                        warnings.push(warning.to_string());
                    }
                    event => assert_eq!(event, Event::Idle),
                }
            }
            assert!(warnings.len() <= 2 && warnings[0].contains(&address), "{warnings:?}");
            warned_at
        };
        // On a busy machine it may come late: then it is asked again.
        assert!((0..5).any(|_| refused_in() < Duration::from_secs(3)), "{address}");
        assert!((0..5).any(|_| warned_in() < Duration::from_secs(3)), "{address}");
    }
    drop(silent);
}

/// A node that was followed to its tip and then accepts, and says nothing.
#[test]
fn a_node_that_goes_silent_while_it_is_followed_is_reported_and_waited_for() {
    let chain = chain(1, 12);
    for rest in [true, false] {
        let server = RpcServer::start(rest, &served(&chain[..10]));
        let mut source = rpc(server.address(), password(), true).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let mut node = Organizer::open(disk(folder.path()), young_options()).unwrap();
        let (options, reader) = (SyncOptions { follow: true, ..options() }, node.reader());
        let (stop, warnings) = (Arc::clone(&options.stop), Arc::new(Mutex::new(Vec::new())));
        let heard = Arc::clone(&warnings);
        let thread = thread::spawn(move || {
            node.sync(&mut source, &options, &mut |report| {
                if let Report::Warning(warning) = report {
                    heard.lock().unwrap().push((Instant::now(), warning.to_string()));
                }
            })
        });
        let begin = Instant::now();
        let wait = |what: &dyn Fn() -> bool| {
            while !what() {
                assert!(begin.elapsed() < Duration::from_secs(60) && !thread.is_finished());
                thread::sleep(Duration::from_millis(10));
            }
        };
        wait(&|| reader.snapshot().tip.1 == chain[9].hash);
        server.answer_with(|_| Reaction::Hang);
        let silent_since = Instant::now();
        wait(&|| !warnings.lock().unwrap().is_empty());
        let (at, warning) = warnings.lock().unwrap()[0].clone();
        let late = at.duration_since(silent_since);
        assert!(late < SOON, "after {late:?}");
        assert!(warning.contains("has not answered for 2 s"), "{warning}");
        thread::sleep(Duration::from_secs(2));
        assert_eq!(warnings.lock().unwrap().len(), 1, "once: {warnings:?}");
        // A request that was not answered is given up after a minute; Ctrl-C does not wait for it.
        let stopped = Instant::now();
        stop.store(true, Ordering::Relaxed);
        thread.join().unwrap().unwrap();
        assert!(stopped.elapsed() < SOON, "{:?}", stopped.elapsed());
    }
}

#[test]
fn a_node_that_comes_later_is_followed() {
    // Nobody else takes the port meanwhile: other tests use another address.
    let place = TcpListener::bind("127.0.0.2:0").unwrap();
    let address = place.local_addr().unwrap().to_string();
    drop(place);
    let mut source = rpc(address.clone(), password(), true).unwrap();
    let chain = chain(1, 10);
    let server = served(&chain);
    thread::spawn(move || {
        thread::sleep(Duration::from_millis(500));
        let listener = TcpListener::bind(address).unwrap();
        std::mem::forget(RpcServer::start_at(&listener, false, &server));
    });
    let folder = tempfile::tempdir().unwrap();
    let mut node = Organizer::open(disk(folder.path()), young_options()).unwrap();
    let (options, reader) = (SyncOptions { follow: true, ..options() }, node.reader());
    let stop = Arc::clone(&options.stop);
    let thread = thread::spawn(move || node.sync(&mut source, &options, &mut |_| {}));
    let begin = Instant::now();
    while reader.snapshot().tip.1 != chain[9].hash {
        assert!(begin.elapsed() < Duration::from_secs(60) && !thread.is_finished());
        thread::sleep(Duration::from_millis(20));
    }
    stop.store(true, Ordering::Relaxed);
    thread.join().unwrap().unwrap();
}

/// Busy, warming up, restarting, without REST after that: each is waited for, and all blocks come.
#[test]
fn a_node_that_is_busy_or_gone_for_a_while_is_waited_for() {
    let warming = r#"[{"id": 0, "error": {"code": -28, "message": "Loading block index…"}}]"#;
    let chunked = "HTTP/1.1 503 -\r\nTransfer-Encoding: chunked\r\n\r\n\
                   1a\r\nWork queue depth exceeded.\r\n0\r\n\r\n";
    let answers: [(&str, Vec<u8>); 4] = [
        ("Loading block index", reply(200, warming.as_bytes())),
        ("Work queue depth exceeded", reply(503, b"Work queue depth exceeded")),
        ("Work queue depth exceeded", chunked.as_bytes().to_vec()),
        ("", Vec::new()),
    ];
    let chain = chain(1, 300);
    for (reason, answer) in answers {
        for when in ["getblockchaininfo", "getblockheader", "getblock"] {
            let server = RpcServer::start(false, &served(&chain));
            let (answer, mut left) = (answer.clone(), 3);
            let gone = answer.is_empty();
            let is_first = when == "getblockchaininfo";
            server.answer_with(move |request| {
                // At first the node must not be gone: that would be an error.
                let mut methods = request.methods.iter();
                let hit = methods.any(|method| method == when) && !(gone && is_first);
                match hit && left > 0 {
                    true => {
                        left -= 1;
                        Reaction::Raw(answer.clone())
                    }
                    false => Reaction::Serve,
                }
            });
            if gone && when != "getblock" {
                continue;
            }
            let mut source = rpc(server.address(), password(), false).unwrap();
            let folder = tempfile::tempdir().unwrap();
            let mut node = Organizer::open(disk(folder.path()), young_options()).unwrap();
            let mut warnings = Vec::new();
            node.sync(&mut source, &options(), &mut |report| {
                if let Report::Warning(warning) = report {
                    warnings.push(warning.to_owned());
                }
            })
            .unwrap();
            assert_eq!(node.snapshot().tip.1, chain[299].hash, "{when}");
            assert!(
                warnings.iter().any(|warning| warning.to_string().contains(reason)),
                "{warnings:?}"
            );
            assert!(warnings.iter().all(|warning| warning.to_string().contains(&server.address())));
        }
    }
}

#[test]
fn rest_that_was_turned_off_by_a_restart_is_not_missed() {
    let chain = chain(1, 300);
    let server = RpcServer::start(true, &served(&chain));
    let mut source = rpc(server.address(), password(), false).unwrap();
    server.set_rest(false);
    let folder = tempfile::tempdir().unwrap();
    let mut node = Organizer::open(disk(folder.path()), young_options()).unwrap();
    sync(&mut node, &mut source, &options()).unwrap();
    assert_eq!(node.snapshot().tip.1, chain[299].hash);
}

/// Ctrl-C while a node says nothing.
#[test]
fn a_sync_from_a_node_that_hangs_can_be_stopped() {
    let chain = chain(1, 20);
    for method in ["getblockhash", "getblock"] {
        let server = RpcServer::start(false, &served(&chain));
        server.answer_with(move |request| match request.methods.iter().any(|m| m == method) {
            true => Reaction::Hang,
            false => Reaction::Serve,
        });
        let mut source = rpc(server.address(), password(), false).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let mut node = Organizer::open(disk(folder.path()), young_options()).unwrap();
        let options = options();
        let stop = Arc::clone(&options.stop);
        thread::spawn(move || {
            thread::sleep(Duration::from_millis(700));
            stop.store(true, Ordering::Relaxed);
        });
        let begin = Instant::now();
        node.sync(&mut source, &options, &mut |_| {}).unwrap();
        drop(source);
        assert!(begin.elapsed() < SOON, "{method}: {:?}", begin.elapsed());
    }
}

/// Headers that were refused as too far in the future are given again when their time has come.
#[test]
fn headers_that_were_refused_once_are_given_again() {
    let chain = chain(1, 30);
    let server = RpcServer::start(false, &served(&chain[..20]));
    let folder = tempfile::tempdir().unwrap();
    let mut node = Organizer::open(disk(folder.path()), young_options()).unwrap();
    let mut source = rpc(server.address(), password(), true).unwrap();
    // Blocks are 600 s apart: at this time those above the tenth or so are too young.
    let genesis = 1_296_688_602;
    let clock = Arc::new(std::sync::atomic::AtomicU32::new(genesis));
    let now = Arc::clone(&clock);
    let now = move || now.load(Ordering::Relaxed);
    let options = SyncOptions { follow: true, now: Arc::new(now), ..options() };
    let (stop, reader) = (Arc::clone(&options.stop), node.reader());
    let told = Arc::new(std::sync::Mutex::new(Vec::new()));
    let tell = Arc::clone(&told);
    let thread = thread::spawn(move || {
        node.sync(&mut source, &options, &mut |report| {
            tell.lock().unwrap().push(format!("{report:?}"));
        })
    });
    let begin = Instant::now();
    let wait = |height: u32| {
        while reader.snapshot().tip.0.to_u32() < height {
            let at = reader.snapshot().tip.0;
            let in_time = begin.elapsed() < Duration::from_secs(60) && !thread.is_finished();
            assert!(in_time, "at {at}, not at {height}: {:?}", told.lock().unwrap());
            thread::sleep(Duration::from_millis(20));
        }
        reader.snapshot().tip.0.to_u32()
    };
    assert!(wait(5) < 20, "some were refused");
    clock.store(genesis + 1_000_000, Ordering::Relaxed);
    server.set_chain(&served(&chain));
    wait(30);
    stop.store(true, Ordering::Relaxed);
    thread.join().unwrap().unwrap();
}

/// A chain that is known by another way is not given again.
#[test]
fn what_is_known_is_not_asked_for() {
    let chain = chain(1, 3000);
    let folder = tempfile::tempdir().unwrap();
    let mut node = Organizer::open(disk(folder.path()), young_options()).unwrap();
    sync(&mut node, &mut pipe(Network::Regtest, &bytes_of(&chain)), &options()).unwrap();
    let server = RpcServer::start(true, &served(&chain));
    sync(&mut node, &mut rpc(server.address(), Login::Nobody, false).unwrap(), &options()).unwrap();
    let requests = server.requests();
    assert!(requests.len() <= 7, "{requests:?}");
}

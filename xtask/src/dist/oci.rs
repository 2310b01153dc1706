//! The image: an OCI layout in a tar file, which needs no Docker to be made.
//!
//! ```text
//! oci-layout                  {"imageLayoutVersion":"1.0.0"}
//! index.json                  names the manifest
//! blobs/sha256/DIGEST         the manifest, the configuration, the one layer
//! ```
//!
//! The layer has `/varve`, an empty `/data` of the user 65532, which the program runs as, and
//! `/tmp`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::{Release, scratch, set_mode, trial, write};
use crate::run;

/// The user that the program runs as, as in other images without a shell.
const USER: u32 = 65_532;

/// Makes the image, and returns its path.
pub(super) fn make(release: &Release) -> Result<PathBuf> {
    let layout = scratch(&release.out, "image")?;
    let layer = layer(release)?;
    let layer_digest = sha256(&layer)?;
    let configuration = json!({
        "architecture": release.architecture,
        "os": "linux",
        "config": {
            "User": USER.to_string(),
            "Entrypoint": ["/varve"],
            "Cmd": ["serve", "--datadir", "/data", "--http", "0.0.0.0:3000",
                    "--electrum", "0.0.0.0:50001"],
            "ExposedPorts": { "3000/tcp": {}, "50001/tcp": {} },
            "Volumes": { "/data": {} },
            "WorkingDir": "/",
            "StopSignal": "SIGTERM",
        },
        "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{layer_digest}")] },
    });
    let layer = add_file(&layout, &layer)?;
    let configuration = add(&layout, &configuration)?;
    let manifest = add(
        &layout,
        &json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": described("application/vnd.oci.image.config.v1+json", &configuration),
            "layers": [described("application/vnd.oci.image.layer.v1.tar", &layer)],
        }),
    )?;
    let mut named = described("application/vnd.oci.image.manifest.v1+json", &manifest);
    if let Some(fields) = named.as_object_mut() {
        let name = format!("varve:{}", release.version);
        fields.insert("annotations".into(), json!({ "org.opencontainers.image.ref.name": name }));
        let platform = json!({ "architecture": release.architecture, "os": "linux" });
        fields.insert("platform".into(), platform);
    }
    let index = json!({ "schemaVersion": 2, "manifests": [named] });
    write(&layout.join("index.json"), index.to_string().as_bytes())?;
    write(&layout.join("oci-layout"), br#"{"imageLayoutVersion":"1.0.0"}"#)?;
    let image = release.out.join(format!("varve-{}-oci.tar", release.version));
    run::run(tar(&image, &layout).arg("."))?;
    fs::remove_dir_all(&layout)?;
    Ok(image)
}

/// A blob of the layout.
struct Blob {
    digest: String,
    bytes: u64,
}

fn described(kind: &str, blob: &Blob) -> Value {
    json!({ "mediaType": kind, "digest": format!("sha256:{}", blob.digest), "size": blob.bytes })
}

/// The tar of the image's files.
fn layer(release: &Release) -> Result<PathBuf> {
    let tree = scratch(&release.out, "layer")?;
    write(&tree.join("varve"), &fs::read(&release.program)?)?;
    set_mode(&tree.join("varve"), 0o755)?;
    for (folder, mode) in [("data", 0o700), ("tmp", 0o1777)] {
        fs::create_dir(tree.join(folder))?;
        set_mode(&tree.join(folder), mode)?;
    }
    let layer = release.out.join("layer.tar");
    // The folder of the data is the user's, the rest root's.
    run::run(tar(&layer, &tree).args(["varve", "tmp"]))?;
    let mut append = Command::new("tar");
    append.args(["--append", "--mtime=@0", "--numeric-owner", "--format=gnu"]);
    append.args([format!("--owner={USER}"), format!("--group={USER}")]);
    run::run(append.arg("--file").arg(&layer).arg("--directory").arg(&tree).arg("data"))?;
    fs::remove_dir_all(&tree)?;
    Ok(layer)
}

/// A tar of files of a folder that is the same whenever it is made.
fn tar(file: &Path, folder: &Path) -> Command {
    let mut tar = Command::new("tar");
    tar.args(["--create", "--sort=name", "--mtime=@0", "--owner=0", "--group=0"]);
    tar.args(["--numeric-owner", "--format=gnu", "--file"]).arg(file);
    tar.arg("--directory").arg(folder);
    tar
}

fn add(layout: &Path, value: &Value) -> Result<Blob> {
    let path = layout.join("blob");
    write(&path, value.to_string().as_bytes())?;
    add_file(layout, &path)
}

/// Moves a file to where its digest says.
fn add_file(layout: &Path, path: &Path) -> Result<Blob> {
    let (digest, bytes) = (sha256(path)?, fs::metadata(path)?.len());
    let place = layout.join("blobs/sha256").join(&digest);
    fs::create_dir_all(layout.join("blobs/sha256"))?;
    fs::rename(path, place)?;
    Ok(Blob { digest, bytes })
}

fn sha256(path: &Path) -> Result<String> {
    let line = run::output(Command::new("sha256sum").arg("--binary").arg(path))?;
    let digest = line.split_whitespace().next().context("sha256sum says nothing")?;
    Ok(digest.trim_start_matches('\\').to_owned())
}

/// Unpacks the image, and lets its program serve.
pub(super) fn check(image: &Path) -> Result<()> {
    let root = unpack(image)?;
    match run::is_root() {
        true => trial::serves(Path::new("/varve"), Some(&root)),
        false => trial::serves(&root.join("varve"), None),
    }
    .context("the program of the image")?;
    fs::remove_dir_all(&root)?;
    Ok(())
}

/// Follows the layout from its index to the layer, compares every digest, and unpacks the layer.
fn unpack(image: &Path) -> Result<PathBuf> {
    let out = image.parent().context("an image lies in a folder")?;
    let layout = scratch(out, "unpacked-image")?;
    run::run(Command::new("tar").arg("--extract").arg("--file").arg(image).arg("-C").arg(&layout))?;
    let index = read(&layout.join("index.json"))?;
    let manifest = read(&blob(&layout, index.pointer("/manifests/0"))?)?;
    let configuration = read(&blob(&layout, manifest.pointer("/config"))?)?;
    let layer = blob(&layout, manifest.pointer("/layers/0"))?;
    let diff_id = configuration.pointer("/rootfs/diff_ids/0").and_then(Value::as_str);
    ensure!(diff_id == Some(&format!("sha256:{}", sha256(&layer)?)), "the layer is another");
    let root = scratch(out, "unpacked-layer")?;
    run::run(Command::new("tar").arg("--extract").arg("--file").arg(&layer).arg("-C").arg(&root))?;
    fs::remove_dir_all(&layout)?;
    Ok(root)
}

/// The file of a blob that something points to, whose digest and size must be right.
fn blob(layout: &Path, pointer: Option<&Value>) -> Result<PathBuf> {
    let pointer = pointer.context("the layout has no such blob")?;
    let digest = pointer.get("digest").and_then(Value::as_str).unwrap_or_default();
    let digest = digest.strip_prefix("sha256:").context("the digest is no SHA-256")?;
    let path = layout.join("blobs/sha256").join(digest);
    ensure!(sha256(&path)? == digest, "the blob {digest} is another");
    let size = pointer.get("size").and_then(Value::as_u64);
    ensure!(size == Some(fs::metadata(&path)?.len()), "the blob {digest} has another size");
    Ok(path)
}

fn read(path: &Path) -> Result<Value> {
    let text = fs::read_to_string(path)?;
    serde_json::from_str(&text).with_context(|| format!("{} is no JSON", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dist::tests::release;

    #[test]
    fn an_image_is_followed_from_its_index_to_its_program() {
        let release = release("oci");
        let image = make(&release).unwrap();
        let again = fs::read(&image).unwrap();
        let root = unpack(&image).unwrap();
        let program = fs::read(&release.program).unwrap();
        assert_eq!(fs::read(root.join("varve")).unwrap(), program);
        assert!(root.join("data").is_dir() && root.join("tmp").is_dir());
        let listing = run::output(Command::new("tar").arg("-tf").arg(&image)).unwrap();
        assert!(listing.contains("./index.json") && listing.contains("./oci-layout"), "{listing}");
        assert_eq!(fs::read(make(&release).unwrap()).unwrap(), again, "the same again");
        // A byte of the program within the image.
        let place = again.windows(program.len()).position(|window| window == program).unwrap();
        let mut damaged = again;
        damaged[place] ^= 1;
        fs::write(&image, damaged).unwrap();
        assert!(unpack(&image).unwrap_err().to_string().contains("is another"));
        fs::remove_dir_all(&release.out).unwrap();
    }
}

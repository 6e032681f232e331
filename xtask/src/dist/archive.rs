//! The archive's bytes, which depend on nothing but its contents and one time.

use anyhow::Context;
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};

use super::contents::Contents;

/// A gzipped tar file of all contents below the folder `name`: sorted, owned by root, all of the time `modified` (seconds since 1970).
///
/// # Errors
/// A path is too long for a tar file.
pub fn tar_gz(name: &str, contents: &Contents, modified: u64) -> anyhow::Result<Vec<u8>> {
    let mut builder = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::best()));
    for (path, file) in contents {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Regular);
        header.set_mode(file.mode);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(modified);
        header.set_size(file.bytes.len() as u64);
        let path = format!("{name}/{path}");
        builder.append_data(&mut header, &path, &*file.bytes).with_context(|| format!("can't add {path}"))?;
    }
    // A gzip header of flate2 has neither a time nor a name in it.
    Ok(builder.into_inner().and_then(GzEncoder::finish)?)
}

/// The line of `SHA256SUMS` for a file, as `sha256sum --check` reads it.
pub fn checksum(file: &str, bytes: &[u8]) -> String {
    let digest: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{digest}  {file}\n")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::io::Read;

    use super::*;
    use crate::dist::contents::File;

    #[test]
    fn an_archive_is_sorted_owned_by_root_and_of_one_time() {
        let file = |mode, text: &str| File { mode, bytes: text.into() };
        let long = format!("docs/{}.md", "long".repeat(50));
        let contents: Contents = [("z", 0o644), ("bin/chips", 0o755), (&*long, 0o644)]
            .map(|(path, mode)| (path.into(), file(mode, path)))
            .into();
        let bytes = tar_gz("chips-1", &contents, 1_700_000_000).unwrap();
        assert_eq!(bytes, tar_gz("chips-1", &contents, 1_700_000_000).unwrap());
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(&*bytes));
        let mut seen = Vec::new();
        for entry in archive.entries().unwrap() {
            let mut entry = entry.unwrap();
            let path = entry.path().unwrap().display().to_string();
            let header = entry.header();
            assert_eq!((header.uid().unwrap(), header.gid().unwrap(), header.mtime().unwrap()), (0, 0, 1_700_000_000));
            let mode = header.mode().unwrap();
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            assert_eq!(path, format!("chips-1/{text}"));
            seen.push((text, mode));
        }
        assert_eq!(seen, [("bin/chips".to_owned(), 0o755), (long, 0o644), ("z".to_owned(), 0o644)]);
    }

    #[test]
    fn a_checksum_is_what_sha256sum_prints() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  x.tar.gz\n";
        assert_eq!(checksum("x.tar.gz", b""), empty);
    }
}

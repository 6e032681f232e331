//! What a Containerfile makes, in a plain folder. It knows what ours says, and refuses what it does not know.

use std::path::{Path, PathBuf};
use std::process::Command;

/// One instruction, its continued lines joined.
#[derive(Debug, Clone)]
pub struct Instruction {
    pub name: String,
    pub rest: String,
}

/// The instructions of a Containerfile.
pub fn instructions(text: &str) -> Vec<Instruction> {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#')).collect::<Vec<_>>().join("\n");
    let joined = lines.replace("\\\n", " ");
    let lines = joined.lines().map(str::trim).filter(|line| !line.is_empty());
    lines
        .map(|line| {
            let (name, rest) = line.split_once(' ').unwrap_or_else(|| panic!("{line:?} is no instruction"));
            Instruction { name: name.to_owned(), rest: rest.split_whitespace().collect::<Vec<_>>().join(" ") }
        })
        .collect()
}

/// The last stage, as it would be run.
#[derive(Debug, Default)]
pub struct Image {
    pub root: PathBuf,
    pub user: String,
    pub environment: Vec<(String, String)>,
    pub entrypoint: Vec<String>,
    pub command: Vec<String>,
    pub health: Vec<String>,
}

impl Image {
    /// Carries out all steps. Where cargo would build, `binary` is what it would have built.
    pub fn build(containerfile: &str, context: &Path, scratch: &Path, binary: &Path) -> Self {
        let mut stages: Vec<(String, PathBuf)> = Vec::new();
        let mut workdir = PathBuf::from("/");
        // What every engine sets, and every base has.
        let mut image =
            Self { environment: vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())], ..Self::default() };
        for Instruction { name, rest } in instructions(containerfile) {
            let words: Vec<&str> = rest.split(' ').collect();
            let stage = stages.last().map(|(_, root)| root.clone());
            let inside = |path: &str| {
                let path = workdir.join(path);
                stage.clone().unwrap().join(path.strip_prefix("/").unwrap())
            };
            match &*name {
                "FROM" => {
                    let root = scratch.join(format!("stage-{}", stages.len()));
                    base(&root);
                    let name = if let [_, "AS", name] = words[..] { name } else { "" };
                    stages.push((name.to_owned(), root));
                    workdir = PathBuf::from("/");
                }
                "WORKDIR" => {
                    std::fs::create_dir_all(inside(&rest)).unwrap();
                    workdir = workdir.join(&rest);
                }
                "COPY" if rest == ". ." => copy_context(context, &inside(".")),
                "COPY" => copy_from(&stages, &words, &inside),
                "RUN" if words[0] == "cargo" => {
                    assert_eq!(rest, "cargo build --locked --release --bin chips");
                    std::fs::create_dir_all(inside("target/release")).unwrap();
                    std::fs::copy(binary, inside("target/release/chips")).unwrap();
                }
                "RUN" => {
                    let status = Command::new("sh").args(["-euc", &rest]).current_dir(inside(".")).status().unwrap();
                    assert!(status.success(), "RUN {rest}");
                }
                "ENV" => {
                    let pairs = words.iter().map(|pair| pair.split_once('=').unwrap());
                    image.environment.extend(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())));
                }
                "USER" => image.user = rest,
                "ENTRYPOINT" => image.entrypoint = serde_json::from_str(&rest).unwrap(),
                "CMD" => image.command = serde_json::from_str(&rest).unwrap(),
                "HEALTHCHECK" => image.health = serde_json::from_str(rest.split_once(" CMD ").unwrap().1).unwrap(),
                // They say something about the image, and do nothing in it.
                "LABEL" | "VOLUME" | "EXPOSE" => {}
                other => panic!("{other} is an instruction that this test does not know"),
            }
        }
        image.root = stages.pop().unwrap().1;
        image
    }
}

/// The folders that a base has. Its libraries are this machine's, and come in when it is run.
fn base(root: &Path) {
    for folder in ["usr/lib", "usr/lib64", "usr/bin", "usr/local/bin", "proc", "dev", "tmp"] {
        std::fs::create_dir_all(root.join(folder)).unwrap();
    }
    for link in ["lib", "lib64", "bin"] {
        std::os::unix::fs::symlink(format!("usr/{link}"), root.join(link)).unwrap();
    }
}

/// `COPY --from=STAGE [--chmod=M] [--chown=U:G] FROM TO`
fn copy_from(stages: &[(String, PathBuf)], words: &[&str], inside: &impl Fn(&str) -> PathBuf) {
    let option = |name: &str| words.iter().find_map(|word| word.strip_prefix(&format!("--{name}=")));
    let [from, to] = words.iter().filter(|word| !word.starts_with("--")).collect::<Vec<_>>()[..] else {
        panic!("COPY {words:?}")
    };
    let stage = option("from").and_then(|name| stages.iter().find(|(stage, _)| stage == name));
    let (_, stage) = stage.unwrap_or_else(|| panic!("COPY {words:?} from no stage"));
    let (source, target) = (stage.join(from.trim_start_matches('/')), inside(to));
    std::fs::create_dir_all(target.parent().unwrap()).unwrap();
    copy(&source, &target);
    for (program, value) in [("chmod", option("chmod")), ("chown", option("chown"))] {
        if let Some(value) = value {
            run(Command::new(program).arg("-R").arg(value).arg(&target));
        }
    }
}

/// Copies a file or folder with its modes and owners.
pub fn copy(from: &Path, to: &Path) {
    run(Command::new("cp").args(["-a", "-T"]).arg(from).arg(to));
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Copies what an engine would be given of this folder: all but what `.dockerignore` names.
pub fn copy_context(context: &Path, to: &Path) {
    let ignored = std::fs::read_to_string(context.join(".dockerignore")).unwrap();
    let ignored: Vec<_> = ignored.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    for pattern in &ignored {
        let name = pattern.strip_prefix("**/").unwrap_or(pattern);
        assert!(!name.contains(['*', '?', '!', '/', '[']), "{pattern} is a pattern that this test does not know");
    }
    walk(context, to, &ignored, true);
}

fn walk(from: &Path, to: &Path, ignored: &[&str], top: bool) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        let is_ignored = ignored.iter().any(|pattern| match pattern.strip_prefix("**/") {
            Some(anywhere) => anywhere == name,
            None => top && *pattern == name,
        });
        let kind = entry.file_type().unwrap();
        if is_ignored {
            continue;
        } else if kind.is_dir() {
            walk(&entry.path(), &to.join(name), ignored, false);
        } else if kind.is_file() {
            std::fs::copy(entry.path(), to.join(name)).unwrap();
        }
    }
}

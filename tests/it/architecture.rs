//! Modules point one way, and only the ack window confirms.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Whom each module of the crate may import. Nothing else is allowed.
const ARROWS: [(&str, &[&str]); 9] = [
    ("model", &[]),
    ("source", &["model"]),
    ("router", &["model"]),
    ("convert", &["model"]),
    ("sink", &["model"]),
    ("config", &["model", "source", "router", "convert", "sink"]),
    ("ops", &["model"]),
    (
        "relay",
        &[
            "model", "source", "router", "convert", "sink", "config", "ops",
        ],
    ),
    (
        "cli",
        &[
            "model", "source", "router", "convert", "sink", "config", "ops", "relay",
        ],
    ),
];

fn rust_files(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            rust_files(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(path);
        }
    }
}

fn sources() -> Vec<(String, String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    rust_files(&root, &mut files);
    files
        .iter()
        .map(|path| {
            let relative = path
                .strip_prefix(&root)
                .unwrap()
                .to_str()
                .unwrap()
                .to_owned();
            let module = relative.split(['/', '.']).next().unwrap().to_owned();
            (
                module,
                relative,
                std::fs::read_to_string(path).expect("a source file"),
            )
        })
        .collect()
}

/// The modules of the crate that a line names: `crate::a::…`, `crate::{a, b::c}`.
fn named_modules(line: &str) -> BTreeSet<String> {
    let first_word = |text: &str| -> String {
        text.trim_start()
            .chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect()
    };
    let mut modules = BTreeSet::new();
    for (at, _) in line.match_indices("crate::") {
        let rest = &line[at + "crate::".len()..];
        match rest.strip_prefix('{') {
            Some(list) => modules.extend(list.split(',').map(first_word)),
            None => {
                modules.insert(first_word(rest));
            }
        }
    }
    modules
}

#[test]
fn modules_import_only_those_below_them() {
    let known: BTreeSet<&str> = ARROWS.iter().map(|(module, _)| *module).collect();
    let mut forbidden = Vec::new();
    for (module, file, text) in sources() {
        let Some((_, allowed)) = ARROWS.iter().find(|(name, _)| *name == module) else {
            assert!(
                matches!(module.as_str(), "lib" | "main"),
                "{file}: a module that no arrow knows"
            );
            continue;
        };
        for (number, line) in text.lines().enumerate() {
            for named in named_modules(line) {
                if known.contains(named.as_str())
                    && named != module
                    && !allowed.contains(&named.as_str())
                {
                    forbidden.push(format!("{file}:{}: {module} imports {named}", number + 1));
                }
            }
        }
    }
    assert!(forbidden.is_empty(), "{}", forbidden.join("\n"));
}

#[test]
fn imports_are_recognised_in_every_form() {
    let named = |line: &str| named_modules(line).into_iter().collect::<Vec<_>>();
    assert_eq!(named("use crate::sink::Sink;"), ["sink"]);
    assert_eq!(named("use crate::{relay, sink::Sink};"), ["relay", "sink"]);
    assert_eq!(
        named("    let x = crate::config::load(crate::ops::y());"),
        ["config", "ops"]
    );
    assert!(named("use std::io;").is_empty());
}

#[test]
fn only_the_ack_window_makes_a_confirmed_position() {
    let mut makers: Vec<String> = sources()
        .into_iter()
        .filter(|(_, _, text)| {
            // Tests may make one to look at what becomes of it.
            let code = text
                .split("#[cfg(test)]\nmod tests {")
                .next()
                .unwrap_or_default();
            code.contains("everything_before(")
        })
        .map(|(_, file, _)| file)
        .collect();
    makers.sort();
    assert_eq!(makers, ["model/lsn.rs", "relay/ack.rs"]);
}

#[test]
fn only_the_kafka_sink_knows_the_kafka_client() {
    for (_, file, text) in sources() {
        let uses = text.contains("rdkafka::");
        assert!(
            !uses || file.starts_with("sink/kafka/"),
            "{file} uses rdkafka"
        );
    }
}

/// What is compiled in from outside `src` has to reach the image's build too.
#[test]
fn the_image_is_built_from_everything_that_is_compiled_in() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |file: &str| std::fs::read_to_string(root.join(file)).expect("a file");
    let (dockerfile, ignored) = (read("docker/Dockerfile"), read(".dockerignore"));
    let mut folders = BTreeSet::new();
    for (_, file, text) in sources() {
        for included in text.split("include_str!(\"").skip(1) {
            let path = included.split('"').next().unwrap();
            if let Some((_, outside)) = path.rsplit_once("../") {
                // As many steps up as lead out of `src`.
                if path.matches("../").count() > file.matches('/').count() {
                    folders.insert(outside.split('/').next().unwrap().to_owned());
                }
            }
        }
    }
    assert!(folders.contains("sql"), "{folders:?}");
    for folder in folders {
        assert!(
            dockerfile.contains(&format!("COPY {folder} {folder}")),
            "{folder}"
        );
        assert!(ignored.contains(&format!("!{folder}\n")), "{folder}");
    }
}

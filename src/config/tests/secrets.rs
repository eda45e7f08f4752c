use super::*;

/// Every key, known or not, with a secret in it: written if the key is one, else from a
/// provider. Whatever is said about it, the secret is not in it.
#[test]
fn secrets_appear_nowhere() {
    let mut keys: Vec<String> = options::candidates(Layer::Set, Some("outbox")).collect();
    keys.extend(["database.passwort", "my.secret.thing", "slot.nmae"].map(str::to_owned));
    for key in &keys {
        let (written, embedded) = if options::is_secret(key) {
            ("hunter2", "a${env:SECRET}")
        } else {
            ("${env:SECRET}", "( ${env:SECRET} \\")
        };
        for setup in [
            Setup::least(&[(key, written)]),
            Setup::least(&[]).worker(&format!("{key}={written}")),
            Setup::least(&[]).set(&format!("{key}={embedded}")),
        ] {
            let said = match setup.load() {
                Ok(loaded) => {
                    let warnings = setup.shown(&loaded.warnings);
                    format!("{loaded:?}\n{:?}\n{warnings:?}", loaded.config)
                }
                Err(errors) => format!("{errors}\n{errors:?}"),
            };
            assert!(!said.contains("hunter2"), "{key}: {said}");
        }
    }
    assert!(keys.len() > 300);
    let broken = [
        Setup::new("c.json", "{\"database.password\": \"hunter2\""),
        Setup::new("c.json", "\"hunter2\""),
        Setup::new("c.json", "{\"database.password\": \"hunter2\\ud800\"}"),
        Setup::new("c.properties", "database.password=hunter2\\u1"),
        Setup::least(&[]).set("hunter2"),
        Setup::least(&[]).set("=hunter2"),
    ];
    for setup in broken {
        let errors = setup.load().unwrap_err();
        assert!(
            !format!("{errors} {errors:?}").contains("hunter2"),
            "{errors}"
        );
    }
}

use super::reader::Reader;

const EVENT_ROUTER: &str = "io.debezium.transforms.outbox.EventRouter";

/// The transforms a connector names (`transforms`); exactly one, the outbox event router, can be used.
#[derive(Debug)]
pub(super) struct Transforms {
    outbox: Option<String>,
    refused: Vec<String>,
}

impl Transforms {
    /// Looks for the event router among the transforms and refuses all others.
    pub(super) fn read(reader: &mut Reader<'_>) -> Self {
        let mut routers = Vec::new();
        let mut refused = Vec::new();
        let listed = match reader.text("transforms") {
            Some(_) if reader.is_hidden("transforms") => {
                reader.problem(
                    "transforms",
                    "it comes from a config provider",
                    "write the aliases: they are in other keys",
                );
                ""
            }
            listed => listed.unwrap_or_default(),
        };
        for alias in listed
            .split(',')
            .map(str::trim)
            .filter(|alias| !alias.is_empty())
        {
            let key = format!("transforms.{alias}.type");
            let remedy = format!("write {key}={EVENT_ROUTER}");
            match reader.required(&key, &remedy) {
                Some(EVENT_ROUTER) => routers.push(alias.to_owned()),
                class => {
                    if class.is_some() {
                        let what = format!(
                            "the transform {} is not supported by this version",
                            reader.shown(&key)
                        );
                        reader.problem(
                            &key,
                            what,
                            format!(
                                "leave {alias} out of transforms; only {EVENT_ROUTER} can be used"
                            ),
                        );
                    }
                    refused.push(alias.to_owned());
                }
            }
        }
        if routers.len() > 1 {
            reader.problem(
                "transforms",
                "it names more than one outbox event router",
                "leave one of them",
            );
        }
        if routers.is_empty() && refused.is_empty() && !reader.is_hidden("transforms") {
            let remedy = format!("add transforms=outbox and transforms.outbox.type={EVENT_ROUTER}");
            reader.problem("transforms", "no outbox event router is configured", remedy);
        }
        let mut routers = routers.into_iter();
        let outbox = routers.next();
        refused.extend(routers);
        Self { outbox, refused }
    }

    /// The event router's alias.
    pub(super) fn outbox(&self) -> Option<&str> {
        self.outbox.as_deref()
    }

    /// Whether a key belongs to a transform that is refused as a whole.
    pub(super) fn is_refused(&self, key: &str) -> bool {
        let below = key
            .strip_prefix("transforms.")
            .and_then(|rest| rest.split_once('.'));
        below.is_some_and(|(alias, _)| self.refused.iter().any(|refused| refused == alias))
    }
}

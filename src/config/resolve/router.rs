use super::Reader;
use crate::router::{
    MissingColumn, OnUpdate, Options, TopicRoute, TopicRouteError, parse_placements,
};

/// How events are routed: the keys below the event router's alias.
pub(super) fn options(reader: &mut Reader<'_>, alias: Option<&str>) -> Option<Options> {
    let alias = alias?;
    let key = |name: &str| format!("transforms.{alias}.{name}");
    let id_column = column(reader, &key("table.field.event.id"));
    let key_column = column(reader, &key("table.field.event.key"));
    let payload_column = column(reader, &key("table.field.event.payload"));
    let route_column = column(reader, &key("route.by.field"));
    let route = topic_route(
        reader,
        &key("route.topic.regex"),
        &key("route.topic.replacement"),
    );
    let placement = key("table.fields.additional.placement");
    let headers = match reader.written(&placement) {
        None if reader.may_be_absent(&placement) => Some(Vec::new()),
        None => None,
        Some(text) => parse_placements(text)
            .map_err(|error| {
                reader.unusable(
                    &placement,
                    &error,
                    "write column:header or column:header:name",
                )
            })
            .ok(),
    };
    let missing_column = missing_column(
        reader,
        &key("table.field.additional.missing"),
        &key("table.fields.additional.error.on.missing"),
    );
    let on_update = reader.choice(
        &key("table.op.invalid.behavior"),
        &[
            ("warn", Ok(OnUpdate::Warn)),
            ("error", Ok(OnUpdate::Error)),
            ("fatal", Ok(OnUpdate::Fatal)),
        ],
    );
    let updates_skipped = skips_updates(reader);
    Some(Options {
        id_column: id_column?,
        key_column: key_column?,
        payload_column: payload_column?,
        route_column: route_column?,
        route: route?,
        headers: headers?,
        missing_column: missing_column?,
        on_update: if updates_skipped? {
            OnUpdate::Warn
        } else {
            on_update?
        },
    })
}

fn column(reader: &mut Reader<'_>, key: &str) -> Option<String> {
    if reader.written(key) == Some("") {
        reader.problem(
            key,
            "it is empty",
            "write a column's name, or leave it out for the default",
        );
        return None;
    }
    reader.text(key).map(str::to_owned)
}

fn topic_route(reader: &mut Reader<'_>, regex: &str, replacement: &str) -> Option<TopicRoute> {
    match TopicRoute::new(reader.text(regex)?, reader.text(replacement)?) {
        Ok(route) => Some(route),
        Err(TopicRouteError::Regex(error)) => {
            reader.unusable(regex, &error, "write a Java regular expression");
            None
        }
        Err(TopicRouteError::Replacement(error)) => {
            reader.unusable(
                replacement,
                &error,
                "name groups of route.topic.regex, as ${name} or $1",
            );
            None
        }
    }
}

/// Debezium 3.6 renamed the option and forgot the old name; both are taken.
fn missing_column(reader: &mut Reader<'_>, new: &str, old: &str) -> Option<MissingColumn> {
    let by_new = reader.choice(
        new,
        &[
            ("error", Ok(MissingColumn::Error)),
            ("ignore", Ok(MissingColumn::Ignore)),
        ],
    );
    let by_old = reader.choice(
        old,
        &[
            ("true", Ok(MissingColumn::Error)),
            ("false", Ok(MissingColumn::Ignore)),
        ],
    );
    let both_written = reader.written(new).is_some() && reader.written(old).is_some();
    if both_written && by_new.is_some() && by_old.is_some() && by_new != by_old {
        reader.problem(old, format!("it contradicts {new}"), "leave it out");
        return None;
    }
    if reader.written(old).is_some() {
        by_old
    } else {
        by_new
    }
}

/// Updates that the connector skips never reach the router.
fn skips_updates(reader: &mut Reader<'_>) -> Option<bool> {
    const KEY: &str = "skipped.operations";
    let mut skips_updates = false;
    for operation in reader.text(KEY)?.split(',').map(str::trim) {
        match operation {
            "u" => skips_updates = true,
            "d" | "t" | "none" => {}
            "c" => {
                reader.problem(KEY, "it skips inserts, which are the events", "leave c out");
                return None;
            }
            _ => {
                let what = format!("{} is not a list of operations", reader.shown(KEY));
                reader.problem(KEY, what, "write u, d, t or none");
                return None;
            }
        }
    }
    Some(skips_updates)
}

//! Every written key against the table of options: known, misspelt, without effect, refused.

use super::options::{self, KnownOption, Status};
use super::origin::Layer;
use super::raw::{Entry, RawConfig};
use super::report::Report;
use super::suggest::nearest;
use super::transforms::Transforms;

/// Reports every key that does not do what its writer expects.
pub(super) fn check(raw: &RawConfig, transforms: &Transforms, report: &mut Report) {
    let entries = raw
        .iter()
        .filter(|(key, entry)| entry.is_usable() && !transforms.is_refused(key));
    for (key, entry) in entries {
        match options::find(key, entry.origin().layer(), transforms.outbox()) {
            Some(option) => check_known(key, entry, option, report),
            None => report_unknown(key, entry, transforms.outbox(), report),
        }
    }
}

fn check_known(key: &str, entry: &Entry, option: &KnownOption, report: &mut Report) {
    let asks_for_more = !entry.text().trim().is_empty() && !option.is_default(entry.text());
    match option.status {
        Status::Honoured | Status::NoEffect(_) => {}
        Status::Overruled(why) if asks_for_more => {
            report.warning(
                entry.origin(),
                key,
                format!("it has no effect here, because {why}"),
                "leave it out",
            );
        }
        Status::OnlyDefault(why) if asks_for_more => {
            let (what, remedy) = match option.default {
                "" => (
                    format!("it cannot be set: {why}"),
                    "leave it out".to_owned(),
                ),
                default => (
                    format!("only {default:?} is possible: {why}"),
                    format!("write {default} or leave it out"),
                ),
            };
            report.problem(entry.origin(), key, what, remedy);
        }
        Status::Overruled(_) | Status::OnlyDefault(_) => {}
        Status::Refused(instead) => {
            report.problem(entry.origin(), key, "it cannot be used here", instead)
        }
    }
}

fn report_unknown(key: &str, entry: &Entry, alias: Option<&str>, report: &mut Report) {
    let layer = entry.origin().layer();
    let bare = key.strip_prefix("producer.").unwrap_or(key);
    let client = format!("producer.override.{bare}");
    // In a connector these names mean nothing to Connect, though they do in a worker's file.
    let is_client = ["producer.", "security.", "sasl.", "ssl."]
        .iter()
        .any(|prefix| key.starts_with(prefix));
    if layer == Layer::Connector && is_client && options::find(&client, layer, None).is_some() {
        report.warning(
            entry.origin(),
            key,
            "it has no effect in a connector's file",
            format!("write {client}"),
        );
    } else if let Some(meant) = nearest(key, options::candidates(layer, alias)) {
        report.problem(
            entry.origin(),
            key,
            "there is no such key",
            format!("did you mean {meant}?"),
        );
    } else {
        report.warning(
            entry.origin(),
            key,
            "this key is not known and has no effect",
            "leave it out, or correct it",
        );
    }
}

use super::Reader;
use crate::convert::{Converter, ConverterError, Options, Role};

const SIMPLE_HEADER_CONVERTER: &str = "org.apache.kafka.connect.storage.SimpleHeaderConverter";

/// A role without a converter sends text as it is. Where Connect's own are in play, its default
/// for headers is too (`WorkerConfig.HEADER_CONVERTER_CLASS_DEFAULT`).
pub(super) fn options(reader: &mut Reader<'_>) -> Option<Options> {
    let named = |key: &str| reader.text(key).is_some();
    let as_in_connect =
        reader.raw().has_worker() || named("key.converter") || named("value.converter");
    let header_default = as_in_connect.then_some(SIMPLE_HEADER_CONVERTER);
    let key = converter(reader, Role::Key, "key.converter", None);
    let value = converter(reader, Role::Value, "value.converter", None);
    let header = converter(reader, Role::Header, "header.converter", header_default);
    Some(Options {
        key: key?,
        value: value?,
        header: header?,
    })
}

fn converter(
    reader: &mut Reader<'_>,
    role: Role,
    key: &str,
    default: Option<&str>,
) -> Option<Converter> {
    let Some(class) = reader.text(key).or(default) else {
        return Some(Converter::plain(role));
    };
    let raw = reader.raw();
    let below = |name: &str| format!("{key}.{name}");
    let property = |name: &str| {
        let entry = raw.get(&below(name)).filter(|entry| entry.is_usable())?;
        Some(entry.text().trim().to_owned())
    };
    match Converter::from_class(role, class, &property) {
        Ok(converter) => Some(converter),
        Err(error @ ConverterError::Property { property, .. }) => {
            reader.unusable(&below(property), &error, "or leave it out");
            None
        }
        Err(error) => {
            reader.unusable(key, &error, "write one of them, or leave it out");
            None
        }
    }
}

use super::{HeaderPlacement, TopicRoute};

/// The event router's options; [`Default`] gives Debezium's defaults
/// (`EventRouterConfigDefinition`).
#[derive(Debug, Clone)]
pub struct Options {
    /// Column that becomes the header `id` (`table.field.event.id`).
    pub id_column: String,
    /// Column that becomes the record's key (`table.field.event.key`).
    pub key_column: String,
    /// Column that becomes the record's value (`table.field.event.payload`).
    pub payload_column: String,
    /// Column that chooses the topic (`route.by.field`).
    pub route_column: String,
    /// How its value becomes a topic (`route.topic.regex`, `route.topic.replacement`).
    pub route: TopicRoute,
    /// Columns that become further headers, in order (`table.fields.additional.placement`).
    pub headers: Vec<HeaderPlacement>,
    /// What to do when a table lacks such a column (`table.field.additional.missing`, before
    /// Debezium 3.6 `table.fields.additional.error.on.missing`).
    pub missing_column: MissingColumn,
    /// What to do about an UPDATE of an outbox row (`table.op.invalid.behavior`).
    pub on_update: OnUpdate,
}

/// What to do when a table lacks a column that is placed as a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissingColumn {
    /// Refuse the table.
    Error,
    /// Send its events without the header.
    Ignore,
}

/// What to do about an UPDATE of an outbox row, which is never an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnUpdate {
    /// Log a warning and leave it out.
    Warn,
    /// Log an error and leave it out.
    Error,
    /// Stop.
    Fatal,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            id_column: "id".to_owned(),
            key_column: "aggregateid".to_owned(),
            payload_column: "payload".to_owned(),
            route_column: "aggregatetype".to_owned(),
            route: TopicRoute::default(),
            headers: Vec::new(),
            missing_column: MissingColumn::Error,
            on_update: OnUpdate::Warn,
        }
    }
}

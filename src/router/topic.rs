use super::RouteError;
use crate::model::{Case, JavaPattern, JavaReplacement, PatternError, ReplacementError, TopicName};

/// Debezium's `route.topic.regex` when none is given.
const DEFAULT_REGEX: &str = "(?<routedByValue>.*)";
/// Debezium's `route.topic.replacement` when none is given.
const DEFAULT_REPLACEMENT: &str = "outbox.event.${routedByValue}";
/// How much of a topic's name an error shows, in characters.
const SHOWN_CHARACTERS: usize = 80;

/// How a routed value becomes a topic: Kafka's
/// `org.apache.kafka.connect.transforms.RegexRouter`, which the event router uses.
#[derive(Debug, Clone)]
pub struct TopicRoute {
    regex: JavaPattern,
    replacement: JavaReplacement,
    /// The replacement as it was given, for people.
    shown: String,
}

impl std::fmt::Display for TopicRoute {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.shown)
    }
}

/// The pattern or the replacement cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TopicRouteError {
    /// The pattern.
    #[error("route.topic.regex cannot be used: {0}")]
    Regex(PatternError),
    /// The replacement, for this pattern.
    #[error("route.topic.replacement cannot be used: {0}")]
    Replacement(ReplacementError),
}

impl TopicRoute {
    /// A route from `route.topic.regex` and `route.topic.replacement`.
    ///
    /// # Errors
    /// When the pattern or the replacement is malformed, or the replacement names a group that
    /// the pattern does not have.
    pub fn new(regex: &str, replacement: &str) -> Result<Self, TopicRouteError> {
        let regex = JavaPattern::new(regex, Case::Sensitive).map_err(TopicRouteError::Regex)?;
        let shown = replacement.to_owned();
        let replacement =
            JavaReplacement::parse(replacement, &regex).map_err(TopicRouteError::Replacement)?;
        Ok(Self {
            regex,
            replacement,
            shown,
        })
    }

    /// The topic for a routed value. A value that the pattern does not match as a whole is the
    /// topic itself, without any prefix.
    ///
    /// # Errors
    /// When Kafka refuses the topic, or the pattern gives up on the value.
    pub fn route(&self, raw: &str) -> Result<TopicName, RouteError> {
        let replaced = self
            .regex
            .replace_whole(raw, &self.replacement)
            .map_err(RouteError::Regex)?;
        let topic = replaced.unwrap_or_else(|| raw.to_owned());
        TopicName::new(topic.as_str()).map_err(|error| RouteError::InvalidTopic {
            shown: shorten(&topic),
            rule: error.to_string(),
        })
    }
}

impl Default for TopicRoute {
    fn default() -> Self {
        Self::new(DEFAULT_REGEX, DEFAULT_REPLACEMENT).expect("the defaults fit each other")
    }
}

fn shorten(topic: &str) -> String {
    let mut shown: String = topic
        .chars()
        .take(SHOWN_CHARACTERS)
        .flat_map(char::escape_debug)
        .collect();
    if topic.chars().nth(SHOWN_CHARACTERS).is_some() {
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topic(regex: &str, replacement: &str, raw: &str) -> String {
        let route = TopicRoute::new(regex, replacement).unwrap();
        route.route(raw).unwrap().as_str().to_owned()
    }

    #[test]
    fn the_default_puts_a_prefix_before_the_value() {
        let route = TopicRoute::default();
        assert_eq!(route.route("Order").unwrap().as_str(), "outbox.event.Order");
        assert_eq!(route.route("").unwrap().as_str(), "outbox.event.");
    }

    /// Debezium's recordings of `route.topic.*`.
    #[test]
    fn topics_are_those_of_debezium() {
        let named = "(?<routedByValue>.*)";
        for (regex, replacement, raw, expected) in [
            (
                named,
                "claims.${routedByValue}.events",
                "claim",
                "claims.claim.events",
            ),
            (named, "E.${routedByValue}", "my.agg-x_1", "E.my.agg-x_1"),
            (named, "all.events", "policy", "all.events"),
            ("(.*)-(.*)", "$2.$1", "a-b", "b.a"),
            ("(.*)-(.*)", "$2.$1", "a-b-c", "c.a-b"),
            ("(.*)-(.*)", "$2.$1", "nodash", "nodash"),
            (
                "(?:v[0-9]+_)?(?<name>[a-z]+).*",
                "t.${name}",
                "v12_claim",
                "t.claim",
            ),
            (
                "(?:v[0-9]+_)?(?<name>[a-z]+).*",
                "t.${name}",
                "policy9",
                "t.policy",
            ),
            (
                "(?:v[0-9]+_)?(?<name>[a-z]+).*",
                "t.${name}",
                "UPPER",
                "UPPER",
            ),
            ("(.*)", r"a\.b-$0-$1", "claim", "a.b-claim-claim"),
            ("cla", "x", "claim", "claim"),
        ] {
            assert_eq!(
                topic(regex, replacement, raw),
                expected,
                "{regex} {replacement} {raw}"
            );
        }
    }

    #[test]
    fn a_refused_topic_is_shown_escaped_and_short() {
        let route = TopicRoute::default();
        let error = route.route("has space").unwrap_err().to_string();
        assert!(error.contains("\"outbox.event.has space\""), "{error}");
        // The dot stops at the line break, so the value itself is the topic.
        let error = route.route("a\nb").unwrap_err().to_string();
        assert!(error.contains("\"a\\nb\""), "{error}");
        let error = route.route(&"x".repeat(500)).unwrap_err().to_string();
        assert!(error.contains('…') && error.len() < 400, "{error}");
    }

    #[test]
    fn a_replacement_must_name_groups_of_the_pattern() {
        let error = TopicRoute::new("(.*)", "x.${routedByValue}")
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("route.topic.replacement cannot be used: the pattern has no group named 'routedByValue'"),
            "{error}"
        );
        let error = TopicRoute::new("(", "x").unwrap_err().to_string();
        assert!(
            error.starts_with("route.topic.regex cannot be used: a group is not closed"),
            "{error}"
        );
    }
}

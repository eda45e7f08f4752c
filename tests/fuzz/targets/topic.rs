//! `route.topic.regex`, `route.topic.replacement` and a routed value, a line each; the value is
//! all that follows the second line break.

use outboxd::model::{Case, JavaPattern, JavaReplacement, MAX_TOPIC_BYTES};
use outboxd::router::{RouteError, TopicRoute, TopicRouteError};

/// How long an error's text may be beside the pattern that it quotes: it goes into a log.
const MAX_MESSAGE_BYTES: usize = 2000;
/// A longer input is cut: compiling a long pattern takes long, and a topic has 249 characters.
const MAX_INPUT_BYTES: usize = 600;

/// See the module.
pub fn target(input: &[u8]) {
    let input = input.get(..MAX_INPUT_BYTES).unwrap_or(input);
    let text = &*String::from_utf8_lossy(input);
    let mut lines = text.splitn(3, '\n');
    let mut next = || lines.next().unwrap_or_default();
    let (regex, replacement, value) = (next(), next(), next());
    literal(replacement, value);
    for case in [Case::Insensitive, Case::Sensitive] {
        let pattern = JavaPattern::new(regex, case);
        match &pattern {
            Ok(pattern) => replaces(pattern, replacement, value),
            Err(error) => names_a_place(&error.to_string(), regex),
        }
        if case == Case::Sensitive {
            route(pattern.ok().as_ref(), regex, replacement, value);
        }
    }
}

/// A pattern and a replacement without special characters stand for themselves, quoted as
/// `Pattern.quote` and `Matcher.quoteReplacement` do.
fn literal(replacement: &str, value: &str) {
    let quoted = format!(r"\Q{}\E", value.replace(r"\E", r"\E\\E\Q"));
    let Ok(pattern) = JavaPattern::new(&quoted, Case::Sensitive) else {
        panic!("the quoted pattern {quoted:?} is refused");
    };
    let by = replacement.replace('\\', r"\\").replace('$', r"\$");
    let by = JavaReplacement::parse(&by, &pattern).unwrap();
    let replaced = pattern.replace_whole(value, &by).unwrap();
    assert_eq!(replaced.as_deref(), Some(replacement));
    assert_eq!(pattern.matches(&format!("{value}.")), Ok(false));
}

fn replaces(pattern: &JavaPattern, replacement: &str, value: &str) {
    let whole = JavaReplacement::parse("$0", pattern).unwrap();
    if let (Ok(matches), Ok(same)) = (pattern.matches(value), pattern.replace_whole(value, &whole))
    {
        // What is replaced by itself stays.
        assert_eq!(same.as_deref(), matches.then_some(value));
    }
    let by = JavaReplacement::parse(replacement, pattern);
    if replacement.contains(['$', '\\']) {
        return;
    }
    let by = by.expect("a replacement without special characters");
    if let Ok(Some(replaced)) = pattern.replace_whole(value, &by) {
        // It takes the place of one part of the value.
        let fits = |before: &str| {
            let rest = replaced.strip_prefix(before)?;
            let rest = rest.strip_prefix(replacement)?;
            (value.len() >= before.len() + rest.len() && value.ends_with(rest)).then_some(())
        };
        let mut starts = value.char_indices().map(|(at, _)| at).chain([value.len()]);
        assert!(
            starts.any(|at| fits(&value[..at]).is_some()),
            "{replaced:?}"
        );
    }
}

fn names_a_place(error: &str, regex: &str) {
    let place = error
        .rsplit_once("(at character ")
        .and_then(|(_, place)| place.strip_suffix(" of the pattern)")?.parse().ok());
    let characters = regex.chars().count().max(1);
    assert!(
        place.is_some_and(|place| (1..=characters).contains(&place)),
        "{error}"
    );
}

/// The route is made of the same parts, and gives a topic that Kafka takes or an error that a
/// log can take.
fn route(pattern: Option<&JavaPattern>, regex: &str, replacement: &str, value: &str) {
    let by = pattern.map(|pattern| JavaReplacement::parse(replacement, pattern));
    let route = match TopicRoute::new(regex, replacement) {
        Ok(route) => route,
        Err(TopicRouteError::Regex(_)) => return assert!(by.is_none()),
        Err(TopicRouteError::Replacement(_)) => return assert!(matches!(by, Some(Err(_)))),
    };
    let (Some(pattern), Some(Ok(by))) = (pattern, by) else {
        panic!("the route is made where its parts are refused");
    };
    let replaced = pattern.replace_whole(value, &by);
    let expected = replaced.map(|replaced| replaced.unwrap_or_else(|| value.to_owned()));
    match (route.route(value), expected) {
        (Ok(topic), Ok(expected)) => {
            let topic = topic.as_str();
            assert_eq!(topic, expected);
            assert!((1..=MAX_TOPIC_BYTES).contains(&topic.len()));
            let allowed = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
            assert!(topic.chars().all(allowed) && !matches!(topic, "." | ".."));
        }
        (Err(error @ RouteError::InvalidTopic { .. }), Ok(_)) => {
            let error = error.to_string();
            assert!(error.len() <= MAX_MESSAGE_BYTES && !error.contains(char::is_control));
        }
        (Err(RouteError::Regex(_)), Err(_)) => {}
        (found, expected) => panic!("{found:?} where the parts give {expected:?}"),
    }
}

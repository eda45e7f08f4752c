use proptest::prelude::*;

use super::*;

/// `Some(topic)` of Kafka's `RegexRouter`, or the error's text.
fn replaced(regex: &str, replacement: &str, text: &str) -> Result<Option<String>, String> {
    let pattern = JavaPattern::new(regex, Case::Sensitive).map_err(|error| error.to_string())?;
    let by = JavaReplacement::parse(replacement, &pattern).map_err(|error| error.to_string())?;
    pattern
        .replace_whole(text, &by)
        .map_err(|error| error.to_string())
}

fn matches(regex: &str, text: &str) -> bool {
    JavaPattern::new(regex, Case::Sensitive)
        .unwrap()
        .matches(text)
        .unwrap()
}

fn refusal(regex: &str) -> String {
    JavaPattern::new(regex, Case::Insensitive)
        .unwrap_err()
        .to_string()
}

#[test]
fn a_match_is_of_the_whole_text() {
    for (regex, text, expected) in [
        ("cla", "claim", false),
        ("a|ab", "ab", true),
        ("a++b", "aab", true),
        ("a++ab", "aab", false),
        ("(?>a|ab)c", "abc", false),
        ("(?:a?b?.){2}", "ab", true),
        ("(?:a?b?.){2}+", "ab", false),
        ("a", "a\n", false),
        ("a$", "a", true),
        (r"a\Z", "a", true),
        ("^a", "a", true),
        ("", "", true),
        ("", "a", false),
        ("(?=ab)..", "ab", true),
        ("(?!ab)..", "ab", false),
    ] {
        assert_eq!(matches(regex, text), expected, "{regex} on {text:?}");
    }
}

/// Constructs that Rust's engines read differently, checked against java.util.regex of JDK 17.
#[test]
fn ambiguous_constructs_have_javas_meaning() {
    for (regex, text, expected) in [
        (".", "\n", false),
        (".", "\r", false),
        (".", "\u{85}", false),
        (".", "\u{2028}", false),
        ("(?s).", "\r", true),
        ("(?s:.)", "\n", true),
        (r"\w", "é", false),
        (r"\W", "é", true),
        (r"\d", "\u{660}", false),
        (r"\s", "\u{a0}", false),
        (r"\s", "\u{b}", true),
        (r"\h", "a", false),
        (r"\h", "\u{a0}", true),
        (r"\v", "\u{2029}", true),
        (r"[\h]", "f", false),
        (r"\p{Alpha}", "é", false),
        (r"\P{Alpha}", "é", true),
        (r"\p{Punct}", "$", true),
        (r"\R", "\r\n", true),
        (r"\Qa.b\E", "a.b", true),
        (r"\Qa.b\E", "axb", false),
        (r"\Qa.b", "a.b", true),
        (r"[\Q]-\E]", "-", true),
        (r"\\Q", r"\Q", true),
        (r"\x41\u0042\x{43}\t", "ABC\t", true),
        (r"[\w-.]+", "a-.", true),
        ("[a-]", "-", true),
        ("[a&b^]", "^", true),
        (r"a\.b\-c\_", "a.b-c_", true),
        ("#a b", "#a b", true),
        ("a{2}", "aa", true),
        ("a{2,}+", "aaaa", true),
        ("(a*)?", "", true),
        ("(a{0}b)+", "bb", true),
        ("}]", "}]", true),
    ] {
        assert_eq!(matches(regex, text), expected, "{regex} on {text:?}");
    }
}

#[test]
fn case_folding_is_ascii_only() {
    let insensitive = |regex, text| {
        JavaPattern::new(regex, Case::Insensitive)
            .unwrap()
            .matches(text)
            .unwrap()
    };
    assert!(insensitive("public.Outbox", "PUBLIC.oUTBOX"));
    assert!(insensitive("[a-c]+[X-Z]", "ABCx"));
    assert!(!insensitive("[^a]", "A"));
    assert!(!insensitive("é", "É"));
    // The long s and the Kelvin sign fold to ASCII letters in Unicode.
    assert!(!insensitive("s", "ſ") && !insensitive("[a-z]", "\u{212a}"));
    assert!(!insensitive("(?-i)a", "A"));
    assert!(matches("(?i)a", "A") && matches("(?i:a)b", "Ab") && !matches("(?i:a)b", "AB"));
    assert!(
        matches("a(?i)b|c", "C"),
        "the flag holds to the end of the group"
    );
    assert!(!matches("(?:(?i)a)b", "aB"), "and no further");
}

#[test]
fn what_java_refuses_or_has_no_twin_here_is_refused_with_its_place() {
    for (regex, reason) in [
        (
            "ab(",
            "a group is not closed; write \\( for a literal parenthesis (at character 3 of the pattern)",
        ),
        ("ab)", "without its ("),
        ("[a", "a class is not closed"),
        ("[]", "a class is empty"),
        ("[b-a]", "the lower one first"),
        ("[a[b]]", "a class within a class is not supported"),
        (
            "[a-z&&[^b]]",
            "the intersection && of classes is not supported",
        ),
        ("*a", "nothing for * to repeat"),
        ("a**", "nothing for * to repeat"),
        ("{", "nothing for { to repeat"),
        ("a{,2}", "a repetition looks like"),
        (
            "^*",
            "a quantifier follows something that cannot be repeated",
        ),
        ("(a*)+", "what can match the empty text cannot be repeated"),
        (
            "(?:a?|b){2}",
            "what can match the empty text cannot be repeated",
        ),
        (
            "(a|(?=b)){0,1}",
            "what can match the empty text cannot be repeated",
        ),
        ("(?<1a>b)", "a group's name has letters and digits"),
        ("(?<a>b)(?<a>c)", "two groups named 'a'"),
        ("(?<=a)b", "look-behind is not supported"),
        ("(?!(a)).", "a capturing group within look-ahead"),
        (
            "(?>(a)b|a)",
            "an atomic group or a possessive repetition is not supported",
        ),
        (
            "(?<n>a)++",
            "an atomic group or a possessive repetition is not supported",
        ),
        ("(?U)a", "the flag (?U) is not supported"),
        ("(?x)a", "the flag (?x) is not supported"),
        ("(?m)^a", "the flag (?m) is not supported"),
        (
            r"(a)\1",
            "back references and octal escapes are not supported",
        ),
        (r"\bword", r"\b is not supported"),
        (r"\X", r"\X is not supported"),
        (
            r"\p{javaLowerCase}",
            "is not supported; write the characters",
        ),
        (r"\p{Alpha", "is not supported; write the characters"),
        (r"\pL", "is not supported; write the characters"),
        (r"\p{Upper}", "is not supported; write the characters"),
        (r"\uD83D", "is no surrogate"),
        (r"\x4", "a character code looks like"),
        ("a\\", "ends with a backslash"),
        (&"(".repeat(60), "nested more than 50 deep"),
    ] {
        let error = refusal(regex);
        assert!(error.contains(reason), "{regex}: {error}");
    }
}

#[test]
fn replacing_follows_kafkas_regex_router() {
    for (regex, replacement, text, expected) in [
        (
            "(?<routedByValue>.*)",
            "outbox.event.${routedByValue}",
            "Order",
            Some("outbox.event.Order"),
        ),
        (
            "(?<routedByValue>.*)",
            "outbox.event.${routedByValue}",
            "a\nb",
            None,
        ),
        ("(?<routedByValue>Ord)", "x.${routedByValue}", "Order", None),
        ("(.*)-(.*)", "$2.$1", "a-b-c", Some("c.a-b")),
        ("(.*)", r"a\.b-$0-$1", "claim", Some("a.b-claim-claim")),
        ("(.*)", r"\$1\\", "claim", Some(r"$1\")),
        // A second digit belongs to the number only if there is such a group.
        ("(.*)", "$12", "a", Some("a2")),
        ("(a)?(b)", "<$1$2>", "b", Some("<b>")),
        // Text from a group is literal.
        ("(.*)", "x.$1", r"a$1\b", Some(r"x.a$1\b")),
        // replaceFirst searches again, and may find less than the whole.
        ("a|ab", "x", "ab", Some("xb")),
        ("(a*?)", "<$1>", "aa", Some("<>aa")),
    ] {
        let result = replaced(regex, replacement, text).unwrap();
        assert_eq!(
            result.as_deref(),
            expected,
            "{regex} {replacement} on {text:?}"
        );
    }
}

#[test]
fn a_malformed_replacement_is_refused_before_any_match() {
    for (replacement, reason) in [
        ("a\\", "it ends with a backslash"),
        ("a$", "neither a digit nor {name}"),
        ("$x", "neither a digit nor {name}"),
        ("${", "${ is not followed by a group's name"),
        ("${}", "${ is not followed by a group's name"),
        ("${1a}", "${ is not followed by a group's name"),
        ("${a_b}", "${ is not followed by a group's name"),
        (
            "${nope}",
            "the pattern has no group named 'nope'; write (?<nope>…) in it",
        ),
        (
            "$2",
            "it uses group $2, but the pattern has 1 capturing group(s)",
        ),
    ] {
        let error = replaced("(?<n>.*)", replacement, "").unwrap_err();
        assert!(error.contains(reason), "{replacement}: {error}");
    }
}

#[test]
fn catastrophic_backtracking_is_an_error_not_a_hang() {
    // The look-ahead keeps it from being handed to an engine that cannot backtrack.
    let error = replaced("(?:(?=a)a|a|aa)+b", "x", &"a".repeat(60)).unwrap_err();
    assert!(
        error.contains("backtracks too much on a text of 60 bytes"),
        "{error}"
    );
}

proptest! {
    #[test]
    fn quoted_text_matches_itself_and_nothing_else(text in "[^\\\\]{0,12}", other in ".{0,3}") {
        let quoted = format!(r"\Q{text}\E");
        prop_assert!(matches(&quoted, &text));
        prop_assert_eq!(matches(&quoted, &other), text == other);
    }

    #[test]
    fn any_text_is_read_or_refused(regex in r"[ab(\[{^$.*+?|\\)\]}QEdpx&<>:=!0-2,-]{0,16}", text in "[ab-]{0,4}") {
        if let Ok(pattern) = JavaPattern::new(&regex, Case::Insensitive) {
            let _ = pattern.matches(&text);
        }
    }

    #[test]
    fn any_replacement_is_read_or_refused(replacement in r"[a$\\{}0-9n]{0,10}") {
        let result = replaced("(?<n>a)(b)?", &replacement, "ab");
        prop_assert!(result.is_err() || result.is_ok_and(|topic| topic.is_some()));
    }
}

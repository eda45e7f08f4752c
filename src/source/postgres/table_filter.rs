use crate::model::{Case, JavaPattern, MatchError, PatternError, TableName};

/// Which tables are captured: Debezium's `table.include.list` or `table.exclude.list`.
///
/// A list has Java regular expressions separated by commas (`\,` is a comma within one), each
/// of which has to match all of `schema.table`, whatever the case (Debezium's `Filters`,
/// `Strings.setOfRegex`). System tables are never captured.
#[derive(Debug, Clone)]
pub struct TableFilter {
    list: List,
}

#[derive(Debug, Clone)]
enum List {
    Everything,
    Include(Vec<JavaPattern>),
    Exclude(Vec<JavaPattern>),
}

/// The lists cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TableFilterError {
    /// Debezium takes one of them only.
    #[error("table.include.list and table.exclude.list are both given; keep one of them")]
    BothLists,
    /// One item of a list is no usable pattern.
    #[error(
        "'{item}' in {list} cannot be used: {problem}; a comma within a pattern is written \\,"
    )]
    Pattern {
        /// `table.include.list` or `table.exclude.list`.
        list: &'static str,
        /// The item.
        item: String,
        /// What is wrong with it.
        problem: PatternError,
    },
}

impl TableFilter {
    /// Reads the lists; an absent one and a blank one are the same.
    ///
    /// # Errors
    /// When both are given, or an item is not a pattern that can be used.
    pub fn new(include: Option<&str>, exclude: Option<&str>) -> Result<Self, TableFilterError> {
        let given = |list: Option<&str>| {
            list.filter(|text| !text.trim().is_empty())
                .map(str::to_owned)
        };
        let list = match (given(include), given(exclude)) {
            (None, None) => List::Everything,
            (Some(include), None) => List::Include(patterns("table.include.list", &include)?),
            (None, Some(exclude)) => List::Exclude(patterns("table.exclude.list", &exclude)?),
            (Some(_), Some(_)) => return Err(TableFilterError::BothLists),
        };
        Ok(Self { list })
    }

    /// Whether rows of `table` are captured.
    ///
    /// # Errors
    /// When a pattern backtracks too much on the name: no answer would be a safe guess.
    pub fn includes(&self, table: &TableName) -> Result<bool, MatchError> {
        if is_system(table) {
            return Ok(false);
        }
        let full_name = table.to_string();
        match &self.list {
            List::Everything => Ok(true),
            List::Include(patterns) => any_matches(patterns, &full_name),
            List::Exclude(patterns) => any_matches(patterns, &full_name).map(|found| !found),
        }
    }

    /// The tables that are named as they are, not by a pattern: `schema.table` of letters,
    /// digits and `_`, with or without a backslash before the dot.
    pub fn plain_names(&self) -> Vec<TableName> {
        let List::Include(patterns) = &self.list else {
            return Vec::new();
        };
        let plain = |text: &str| {
            let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_';
            !text.is_empty() && text.chars().all(allowed)
        };
        patterns
            .iter()
            .filter_map(|pattern| pattern.as_str().split_once('.'))
            .map(|(schema, name)| (schema.strip_suffix('\\').unwrap_or(schema), name))
            .filter(|(schema, name)| plain(schema) && plain(name))
            .map(|(schema, name)| TableName {
                schema: schema.to_owned(),
                name: name.to_owned(),
            })
            .collect()
    }

    /// Whether the tables to capture are named, rather than those to leave out.
    pub fn has_include_list(&self) -> bool {
        matches!(self.list, List::Include(_))
    }
}

fn is_system(table: &TableName) -> bool {
    let schema = table.schema.as_str();
    matches!(schema, "pg_catalog" | "information_schema")
        || schema.starts_with("pg_temp")
        || schema.starts_with("pg_toast")
        || table.name == "spatial_ref_sys"
}

fn any_matches(patterns: &[JavaPattern], full_name: &str) -> Result<bool, MatchError> {
    for pattern in patterns {
        if pattern.matches(full_name)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn patterns(list: &'static str, text: &str) -> Result<Vec<JavaPattern>, TableFilterError> {
    let compile = |item: String| {
        JavaPattern::new(&item, Case::Insensitive).map_err(|problem| TableFilterError::Pattern {
            list,
            item,
            problem,
        })
    };
    items(text).map(compile).collect()
}

/// The items between commas, without blanks around them and without empty ones. A comma
/// behind a backslash separates nothing and loses the backslash.
fn items(text: &str) -> impl Iterator<Item = String> {
    let mut escaped = false;
    let separates = move |c: char| {
        let separator = c == ',' && !escaped;
        escaped = c == '\\' && !escaped;
        separator
    };
    text.split(separates)
        .map(|item| item.trim().replace(r"\,", ","))
        .filter(|item| !item.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn includes(include: Option<&str>, exclude: Option<&str>, schema: &str, name: &str) -> bool {
        let table = TableName {
            schema: schema.to_owned(),
            name: name.to_owned(),
        };
        TableFilter::new(include, exclude)
            .unwrap()
            .includes(&table)
            .unwrap()
    }

    #[test]
    fn names_are_told_from_patterns() {
        let filter = TableFilter::new(Some(r"public.outbox, s\.o_1, public.out.*"), None).unwrap();
        let names: Vec<String> = filter
            .plain_names()
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(names, ["public.outbox", "s.o_1"]);
    }

    #[test]
    fn a_pattern_matches_the_whole_name_in_any_case() {
        assert!(includes(Some("public.outbox"), None, "public", "outbox"));
        assert!(includes(Some("PUBLIC.Outbox"), None, "public", "outBOX"));
        assert!(!includes(Some("public.outbox"), None, "public", "outbox_2"));
        assert!(!includes(Some("outbox"), None, "public", "outbox"));
        assert!(includes(
            Some(r"public\.outbox_.*"),
            None,
            "public",
            "outbox_b"
        ));
        assert!(!includes(
            Some(r"public\.outbox_.*"),
            None,
            "public",
            "outbox"
        ));
    }

    #[test]
    fn a_list_has_several_items_with_blanks_around_them() {
        for name in ["a", "b"] {
            assert!(
                includes(Some(" public.a ,\tpublic.b ,"), None, "public", name),
                "{name}"
            );
        }
        assert!(!includes(Some("public.a, public.b"), None, "public", "c"));
    }

    #[test]
    fn an_escaped_comma_belongs_to_the_pattern() {
        assert!(includes(
            Some(r"public\.t[0-9]{1\,2}"),
            None,
            "public",
            "t42"
        ));
        assert!(includes(Some(r"public.a\,b"), None, "public", "a,b"));
        assert_eq!(items(r"a\\,b").collect::<Vec<_>>(), [r"a\\", "b"]);
    }

    #[test]
    fn an_exclude_list_leaves_the_rest() {
        assert!(!includes(None, Some("public.log.*"), "public", "log_1"));
        assert!(includes(None, Some("public.log.*"), "public", "outbox"));
    }

    #[test]
    fn without_lists_all_but_system_tables_are_captured() {
        assert!(includes(None, None, "public", "outbox"));
        assert!(includes(Some(" "), Some(""), "public", "outbox"));
        let system = [
            ("pg_catalog", "pg_class"),
            ("information_schema", "tables"),
            ("pg_temp_3", "t"),
            ("pg_toast", "pg_toast_1"),
            ("public", "spatial_ref_sys"),
        ];
        for (schema, name) in system {
            assert!(!includes(None, None, schema, name), "{schema}.{name}");
            assert!(!includes(Some(".*"), None, schema, name), "{schema}.{name}");
        }
    }

    #[test]
    fn both_lists_together_are_refused() {
        assert_eq!(
            TableFilter::new(Some("a.b"), Some("c.d")).err(),
            Some(TableFilterError::BothLists)
        );
    }

    #[test]
    fn an_unusable_pattern_is_named_with_its_list() {
        let error = TableFilter::new(Some(r"public\.t\d{1,2}"), None)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains(r"'public\.t\d{1' in table.include.list"),
            "{error}"
        );
        assert!(
            error.contains(r"a comma within a pattern is written \,"),
            "{error}"
        );
    }

    #[test]
    fn only_an_include_list_names_the_tables() {
        assert!(
            TableFilter::new(Some("a.b"), None)
                .unwrap()
                .has_include_list()
        );
        assert!(
            !TableFilter::new(None, Some("a.b"))
                .unwrap()
                .has_include_list()
        );
        assert!(!TableFilter::new(None, None).unwrap().has_include_list());
    }
}

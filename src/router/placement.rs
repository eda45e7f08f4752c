/// A column that becomes a header (`column:header[:alias]`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeaderPlacement {
    /// The column.
    pub column: String,
    /// The header's name: the alias, or else the column's name.
    pub header: String,
}

/// The list of `table.fields.additional.placement` cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlacementError {
    /// Neither a pair nor a trio.
    #[error(
        "'{item}' is not column:header or column:header:name; a comma-separated list of valid String pairs or trios is expected"
    )]
    Malformed {
        /// The item.
        item: String,
    },
    /// A word that names no place.
    #[error("'{item}' places a column as '{word}'; it can be placed as 'header'")]
    UnknownPlace {
        /// The item.
        item: String,
        /// Its second part.
        word: String,
    },
    /// A place that Debezium knows and this program does not yet.
    #[error("'{item}': the placement '{place}' is not supported yet; only 'header' is")]
    NotSupported {
        /// The item.
        item: String,
        /// `envelope` or `partition`.
        place: &'static str,
    },
}

/// Reads the list of `table.fields.additional.placement`: `column:header` or
/// `column:header:name`, separated by commas, blanks around the parts ignored
/// (`EventRouterConfigDefinition.parseAdditionalFieldsConfig`).
///
/// # Errors
/// When an item is malformed, the list is blank, or a column is placed elsewhere than in a
/// header.
pub fn parse_placements(text: &str) -> Result<Vec<HeaderPlacement>, PlacementError> {
    text.split(',').map(|item| placement(item.trim())).collect()
}

fn placement(item: &str) -> Result<HeaderPlacement, PlacementError> {
    let malformed = || PlacementError::Malformed {
        item: item.to_owned(),
    };
    // An empty alias is none: Java's split drops empty parts at the end.
    let mut parts = item.trim_end_matches(':').split(':').map(str::trim);
    let (Some(column), Some(place), alias, None) =
        (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return Err(malformed());
    };
    if column.is_empty() || alias == Some("") {
        return Err(malformed());
    }
    match place.to_ascii_lowercase().as_str() {
        "header" => Ok(HeaderPlacement {
            column: column.to_owned(),
            header: alias.unwrap_or(column).to_owned(),
        }),
        "envelope" => Err(PlacementError::NotSupported {
            item: item.to_owned(),
            place: "envelope",
        }),
        "partition" => Err(PlacementError::NotSupported {
            item: item.to_owned(),
            place: "partition",
        }),
        _ => Err(PlacementError::UnknownPlace {
            item: item.to_owned(),
            word: place.to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(text: &str) -> Vec<(String, String)> {
        let placements = parse_placements(text).unwrap();
        placements
            .into_iter()
            .map(|p| (p.column, p.header))
            .collect()
    }

    fn pair(column: &str, header: &str) -> (String, String) {
        (column.to_owned(), header.to_owned())
    }

    #[test]
    fn the_alias_names_the_header_and_the_column_does_without_one() {
        assert_eq!(
            pairs("type:header:eventType,tenant:header,x:header:"),
            [
                pair("type", "eventType"),
                pair("tenant", "tenant"),
                pair("x", "x")
            ]
        );
    }

    #[test]
    fn blanks_and_the_case_of_the_word_do_not_count() {
        assert_eq!(
            pairs(" type : HEADER : eventType , t:Header"),
            [pair("type", "eventType"), pair("t", "t")]
        );
    }

    #[test]
    fn a_column_may_be_placed_twice() {
        assert_eq!(
            pairs("type:header,type:header:t2"),
            [pair("type", "type"), pair("type", "t2")]
        );
    }

    #[test]
    fn malformed_items_are_refused_with_debeziums_words() {
        for text in ["", "type", "a:header:b:c", "a:header,", ":header"] {
            let error = parse_placements(text).unwrap_err();
            assert!(
                matches!(error, PlacementError::Malformed { .. }),
                "{text}: {error}"
            );
            assert!(
                error
                    .to_string()
                    .contains("comma-separated list of valid String pairs or trios is expected"),
                "{error}"
            );
        }
    }

    #[test]
    fn other_places_are_refused_by_name() {
        for (text, named) in [
            ("type:body", "'body'"),
            ("type::x", "''"),
            ("type:Envelope:t", "'envelope' is not supported yet"),
            ("p:partition", "'partition' is not supported yet"),
        ] {
            let error = parse_placements(text).unwrap_err().to_string();
            assert!(error.contains(named), "{error}");
        }
    }
}

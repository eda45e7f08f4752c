//! The list of `table.fields.additional.placement`.

use outboxd::router::{HeaderPlacement, PlacementError, parse_placements};

/// See the module. A list that is accepted has a column and a header for each of its items, and
/// is read the same when it is written anew; one that is refused names an item of it.
pub fn target(input: &[u8]) {
    let text = &*String::from_utf8_lossy(input);
    match parse_placements(text) {
        Ok(placements) => {
            assert_eq!(placements.len(), text.split(',').count());
            for HeaderPlacement { column, header } in &placements {
                for part in [column, header] {
                    assert!(!part.is_empty() && part.trim() == part);
                    assert!(!part.contains([',', ':']) && text.contains(part));
                }
            }
            for (between, place) in [(":", "header"), (" :\t", "hEADER")] {
                let anew: Vec<String> = placements
                    .iter()
                    .map(|p| [&p.column, place, &p.header].join(between))
                    .collect();
                assert_eq!(parse_placements(&anew.join(",")).as_ref(), Ok(&placements));
            }
        }
        Err(error) => {
            let item = match &error {
                PlacementError::Malformed { item } | PlacementError::NotSupported { item, .. } => {
                    item
                }
                PlacementError::UnknownPlace { item, word } => {
                    assert!(item.contains(word.as_str()));
                    item
                }
            };
            assert!(text.split(',').any(|part| part.trim() == item), "{error}");
        }
    }
}

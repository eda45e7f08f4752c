use strsim::osa_distance;

/// Below this length two typing errors make another word.
const SHORT: usize = 6;

/// The candidate that `key` was probably meant to be: at most two letters away (added, left out,
/// wrong, or swapped with the next), one for short keys.
pub(super) fn nearest(key: &str, candidates: impl Iterator<Item = String>) -> Option<String> {
    let written = key.to_lowercase();
    let limit = if written.len() < SHORT { 1 } else { 2 };
    candidates
        // Most are ruled out by their length, which is much cheaper to see.
        .filter(|candidate| candidate.len().abs_diff(written.len()) <= limit)
        .map(|candidate| (osa_distance(&written, &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min()
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_is_one_or_two_letters_away() {
        let known = [
            "name",
            "slot.name",
            "transforms.outbox.route.topic.replacement",
            "converters",
        ];
        for (written, meant) in [
            ("slot.nmae", Some("slot.name")),
            ("slto.nmae", Some("slot.name")),
            ("Slot.Name", Some("slot.name")),
            (
                "transforms.outbox.route.topic.replacment",
                Some("transforms.outbox.route.topic.replacement"),
            ),
            ("names", Some("name")),
            ("mode", None),
            ("slot.label", None),
            ("", None),
        ] {
            let found = nearest(written, known.iter().map(|&key| key.to_owned()));
            assert_eq!(found.as_deref(), meant, "{written}");
        }
    }
}

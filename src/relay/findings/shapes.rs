use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Finding, Unfit};
use crate::model::Lsn;
use crate::source::postgres::SlotFacts;

/// The shapes of tables that stand against the stream, shared by all who look.
///
/// The catalog has the shape of now, and what waits in the slot may have been written before it
/// became so: that is delivered first (rule R6). At the first event behind the change the stream
/// ends by itself. Where none comes, it ends when everything written until now is delivered.
#[derive(Debug, Clone, Default)]
pub(in crate::relay) struct Shapes {
    unfit: Arc<Mutex<Option<UnfitShape>>>,
}

#[derive(Debug)]
struct UnfitShape {
    /// All that is wrong, in words.
    what: String,
    /// Behind the change, whatever is in the log up to here. Taken at the second look: the first
    /// may have found a change younger than the end of the log that it read.
    log_end: Option<Lsn>,
}

impl Shapes {
    /// What stands against streaming now. A look with `slot` as it was in the same moment.
    pub(in crate::relay) fn judge(
        &self,
        found: &[Finding],
        slot: Option<&SlotFacts>,
    ) -> Option<Unfit> {
        let mut known = self.lock();
        let others: Vec<Finding> = found
            .iter()
            .filter(|finding| !finding.at_its_place)
            .cloned()
            .collect();
        let unfit = Unfit::of(found);
        let (None, Some(unfit), Some((confirmed, log_end))) =
            (Unfit::of(&others), &unfit, slot.and_then(positions))
        else {
            *known = None;
            return unfit;
        };
        let what = unfit.to_string();
        match known.as_mut().filter(|known| known.what == what) {
            None => {
                tracing::warn!("{what}. What was written before that is delivered first.");
                *known = Some(UnfitShape {
                    what,
                    log_end: None,
                });
                None
            }
            Some(shape) => {
                let end = *shape.log_end.get_or_insert(log_end);
                (confirmed >= end).then(|| unfit.clone())
            }
        }
    }

    /// What is wrong with the tables while only what was written before is delivered.
    pub(in crate::relay) fn standing(&self) -> Option<String> {
        let known = self.lock();
        let what = &known.as_ref()?.what;
        Some(format!("only what was written before is delivered: {what}"))
    }

    fn lock(&self) -> MutexGuard<'_, Option<UnfitShape>> {
        self.unfit.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is confirmed, and where the log ends.
fn positions(slot: &SlotFacts) -> Option<(Lsn, Lsn)> {
    Some((slot.confirmed_flush_lsn?, slot.server_lsn?))
}

#[cfg(test)]
mod tests {
    use super::super::advice;
    use super::*;

    fn slot(confirmed: u64, log_end: u64) -> SlotFacts {
        SlotFacts {
            confirmed_flush_lsn: Some(Lsn::new(confirmed)),
            server_lsn: Some(Lsn::new(log_end)),
            ..SlotFacts::default()
        }
    }

    fn shape(what: &str) -> Finding {
        Finding::error(what, advice("mend it")).told_at_its_place()
    }

    #[test]
    fn what_was_written_before_is_delivered_first() {
        let shapes = Shapes::default();
        let found = [shape("No column.")];
        let look = |confirmed, end| shapes.judge(&found, Some(&slot(confirmed, end)));
        assert_eq!(look(10, 10), None, "the change may be younger than the end");
        assert!(shapes.standing().unwrap().contains("No column"));
        assert_eq!(look(10, 20), None);
        assert_eq!(look(19, 30), None, "something is left");
        assert_eq!(look(20, 30), Unfit::of(&found));
        assert_eq!(look(20, 40), Unfit::of(&found), "and stays so");
    }

    #[test]
    fn another_shape_begins_anew_and_one_that_is_mended_is_forgotten() {
        let shapes = Shapes::default();
        let (one, other) = ([shape("One.")], [shape("Other.")]);
        let look = |found: &[Finding]| shapes.judge(found, Some(&slot(10, 10)));
        assert_eq!(look(&one), None);
        assert!(look(&one).is_some());
        assert_eq!(look(&other), None);
        assert!(look(&other).is_some());
        assert_eq!(look(&[]), None);
        assert_eq!(shapes.standing(), None);
        assert_eq!(look(&other), None);
    }

    #[test]
    fn nothing_waits_where_there_is_no_slot_or_something_else_is_wrong_too() {
        let shapes = Shapes::default();
        let found = [shape("No column.")];
        assert_eq!(shapes.judge(&found, None), Unfit::of(&found));
        let found = [
            shape("No column."),
            Finding::error("No inserts.", advice("mend it")),
        ];
        let slot = slot(0, 10);
        assert_eq!(shapes.judge(&found, Some(&slot)), Unfit::of(&found));
        assert_eq!(shapes.standing(), None);
    }
}

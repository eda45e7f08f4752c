//! Examples by promise, then every interleaving against a naive model.

use super::*;
use proptest::prelude::*;

const LIMITS: Limits = Limits {
    events: 4,
    bytes: 100,
};

fn transaction(window: &mut AckWindow, events: usize, end: u64) -> Vec<Sequence> {
    window.begin().unwrap();
    let sequences = (0..events).map(|_| window.enqueue(1).unwrap()).collect();
    window.commit(Lsn::new(end)).unwrap();
    sequences
}

fn confirmed(window: &AckWindow) -> u64 {
    window.confirmed().lsn().offset()
}

#[test]
fn a_later_acknowledgement_confirms_nothing_past_a_gap() {
    let mut window = AckWindow::new(LIMITS);
    let slow = transaction(&mut window, 1, 10);
    let fast = transaction(&mut window, 2, 20);
    fast.iter()
        .for_each(|sequence| window.acknowledge(*sequence).unwrap());
    assert_eq!((confirmed(&window), window.in_flight()), (0, 3));
    assert_eq!(window.oldest_unacknowledged(), Some(slow[0]));
    window.acknowledge(slow[0]).unwrap();
    assert_eq!(
        (
            confirmed(&window),
            window.in_flight(),
            window.in_flight_bytes()
        ),
        (20, 0, 0)
    );
}

#[test]
fn nothing_of_an_open_transaction_is_confirmed() {
    let mut window = AckWindow::new(LIMITS);
    window.begin().unwrap();
    let sequence = window.enqueue(1).unwrap();
    assert_eq!(window.open_events(), 1);
    window.acknowledge(sequence).unwrap();
    window.idle_position(Lsn::new(50));
    assert_eq!(confirmed(&window), 0);
    window.commit(Lsn::new(10)).unwrap();
    assert_eq!((confirmed(&window), window.open_events()), (10, 0));
}

#[test]
fn foreign_transactions_behind_an_event_cost_no_memory() {
    let mut window = AckWindow::new(LIMITS);
    let waiting = transaction(&mut window, 1, 10);
    (11..10_000).for_each(|end| drop(transaction(&mut window, 0, end)));
    assert_eq!((confirmed(&window), window.commits.len()), (0, 1));
    window.acknowledge(waiting[0]).unwrap();
    assert_eq!(confirmed(&window), 9_999);
}

#[test]
fn a_keepalive_is_taken_only_when_nothing_is_in_flight() {
    let mut window = AckWindow::new(LIMITS);
    window.idle_position(Lsn::new(5));
    assert_eq!(confirmed(&window), 5);
    let waiting = transaction(&mut window, 1, 10);
    window.idle_position(Lsn::new(90));
    assert_eq!(confirmed(&window), 5);
    window.acknowledge(waiting[0]).unwrap();
    window.idle_position(Lsn::new(7));
    assert_eq!(confirmed(&window), 10);
}

#[test]
fn a_failure_holds_the_position() {
    let mut window = AckWindow::new(LIMITS);
    let before = transaction(&mut window, 1, 10);
    let failing = transaction(&mut window, 1, 20);
    let after = transaction(&mut window, 1, 30);
    window.fail(failing[0]);
    for sequence in [before[0], failing[0], after[0]] {
        window.acknowledge(sequence).unwrap();
    }
    drop(transaction(&mut window, 0, 40));
    window.idle_position(Lsn::new(50));
    assert_eq!(confirmed(&window), 10);
}

#[test]
fn an_event_that_was_withdrawn_holds_nothing_up() {
    let mut window = AckWindow::new(LIMITS);
    window.begin().unwrap();
    let first = window.enqueue(1).unwrap();
    window.enqueue(1).unwrap();
    window.withdraw_last();
    assert_eq!((window.in_flight(), window.in_flight_bytes()), (1, 1));
    window.commit(Lsn::new(10)).unwrap();
    window.acknowledge(first).unwrap();
    assert_eq!(confirmed(&window), 10);
}

#[test]
fn a_report_that_makes_no_sense_stops_everything() {
    for report in [0, 2, 3] {
        let mut window = AckWindow::new(LIMITS);
        let sequences = transaction(&mut window, 3, 10);
        window.acknowledge(sequences[0]).unwrap();
        window.acknowledge(sequences[2]).unwrap();
        assert_eq!(
            window.acknowledge(Sequence(report)),
            Err(AckError(Sequence(report)))
        );
        window.acknowledge(sequences[1]).unwrap();
        drop(transaction(&mut window, 0, 20));
        assert_eq!(confirmed(&window), 0);
    }
}

#[test]
fn a_transaction_sent_again_after_a_cut_waits_for_what_was_enqueued_before_it() {
    let mut window = AckWindow::new(LIMITS);
    let first = transaction(&mut window, 1, 10);
    window.begin().unwrap();
    let cut = window.enqueue(1).unwrap();
    window.abandon_open_transaction();
    drop(transaction(&mut window, 0, 10));
    drop(transaction(&mut window, 0, 20));
    window.acknowledge(first[0]).unwrap();
    assert_eq!(confirmed(&window), 10);
    window.acknowledge(cut).unwrap();
    assert_eq!(confirmed(&window), 20);
}

#[test]
fn another_log_starts_from_no_position() {
    let mut window = AckWindow::new(LIMITS);
    window.idle_position(Lsn::new(100));
    let old = transaction(&mut window, 1, 110);
    window.forget_positions();
    assert_eq!(window.confirmed(), ConfirmedLsn::NONE);
    let new = transaction(&mut window, 1, 60);
    window.acknowledge(new[0]).unwrap();
    assert_eq!(confirmed(&window), 0);
    window.acknowledge(old[0]).unwrap();
    assert_eq!(confirmed(&window), 60);
}

#[test]
fn room_ends_at_either_limit_but_one_large_event_goes_alone() {
    let mut window = AckWindow::new(LIMITS);
    assert!(window.has_room(1_000));
    window.begin().unwrap();
    let large = window.enqueue(99).unwrap();
    assert!(window.has_room(1) && !window.has_room(2) && !window.has_room(usize::MAX));
    window.acknowledge(large).unwrap();
    (0..4).for_each(|_| assert!(window.enqueue(1).is_ok()));
    assert!(!window.has_room(0));
}

#[test]
fn what_is_no_sequence_of_transactions_is_refused() {
    let mut window = AckWindow::new(LIMITS);
    assert_eq!(
        window.enqueue(1),
        Err(ProtocolViolation::EventOutsideTransaction)
    );
    assert_eq!(
        window.commit(Lsn::new(1)),
        Err(ProtocolViolation::CommitWithoutBegin)
    );
    window.begin().unwrap();
    assert_eq!(window.begin(), Err(ProtocolViolation::NestedBegin));
}

/// What can happen; indexes pick among the numbers given out so far, distances count from
/// where the log ends.
#[derive(Debug, Clone)]
enum Step {
    Begin,
    Enqueue(usize),
    Commit { ahead: u64, back: u64 },
    Acknowledge(prop::sample::Index),
    AcknowledgeOldest,
    Fail(prop::sample::Index),
    AcknowledgeUnknown(u64),
    Keepalive { ahead: u64 },
    Abandon,
    ForgetPositions,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => Just(Step::Begin),
        12 => (0..50usize).prop_map(Step::Enqueue),
        12 => (1..10u64).prop_map(|ahead| Step::Commit { ahead, back: 0 }),
        // After a cut, a server sends transactions again.
        3 => (0..50u64).prop_map(|back| Step::Commit { ahead: 0, back }),
        15 => any::<prop::sample::Index>().prop_map(Step::Acknowledge),
        15 => Just(Step::AcknowledgeOldest),
        5 => (0..10u64).prop_map(|ahead| Step::Keepalive { ahead }),
        1 => any::<prop::sample::Index>().prop_map(Step::Fail),
        1 => (0..3u64).prop_map(Step::AcknowledgeUnknown),
        2 => Just(Step::Abandon),
        1 => Just(Step::ForgetPositions),
    ]
}

/// The same, remembered whole and thought through from the beginning each time.
#[derive(Default)]
struct Model {
    /// Size and state of each event, by number.
    events: Vec<(usize, bool)>,
    /// Each end of a transaction, and how many events were numbered before it.
    commits: Vec<(u64, usize)>,
    failed_from: Option<usize>,
    open: bool,
    confirmed: u64,
}

impl Model {
    fn confirm(&mut self) {
        for (end, before) in &self.commits {
            let events = &self.events[..*before];
            let acknowledged = events.iter().all(|(_, acknowledged)| *acknowledged);
            if acknowledged && self.failed_from.is_none_or(|from| *before <= from) {
                self.confirmed = self.confirmed.max(*end);
            }
        }
    }

    fn is_idle(&self) -> bool {
        let acknowledged = self.events.iter().all(|(_, acknowledged)| *acknowledged);
        !self.open && acknowledged && self.failed_from.is_none()
    }

    fn fail(&mut self, number: usize) {
        self.failed_from = Some(self.failed_from.map_or(number, |from| from.min(number)));
    }

    fn acknowledge(&mut self, number: usize) -> bool {
        match self.events.get_mut(number) {
            Some((_, acknowledged)) if !*acknowledged => *acknowledged = true,
            _ => {
                self.fail(0);
                return false;
            }
        }
        true
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn confirms_exactly_what_a_naive_model_does(steps in prop::collection::vec(step(), 0..80)) {
        let mut window = AckWindow::new(LIMITS);
        let mut model = Model::default();
        let mut log_end = 0;
        for step in steps {
            let given = model.events.len();
            match step {
                Step::Begin => {
                    prop_assert_eq!(window.begin().is_ok(), !model.open);
                    model.open = true;
                }
                Step::Enqueue(size) if window.has_room(size) => {
                    let number = window.enqueue(size).ok();
                    prop_assert_eq!(number, model.open.then_some(Sequence(given as u64)));
                    if model.open {
                        model.events.push((size, false));
                    }
                }
                Step::Enqueue(_) => {}
                Step::Commit { ahead, back } => {
                    log_end += ahead;
                    let end = log_end.saturating_sub(back);
                    prop_assert_eq!(window.commit(Lsn::new(end)).is_ok(), model.open);
                    if std::mem::take(&mut model.open) {
                        model.commits.push((end, given));
                    }
                }
                Step::Acknowledge(index) if given > 0 => {
                    // Those acknowledged already are mostly passed over.
                    let number = index.index(given);
                    if matches!(model.events[number], (_, false)) {
                        prop_assert!(window.acknowledge(Sequence(number as u64)).is_ok());
                        model.acknowledge(number);
                    }
                }
                Step::Acknowledge(_) => {}
                Step::AcknowledgeOldest => {
                    let waiting = |event: &(usize, bool)| !event.1;
                    if let Some(number) = model.events.iter().position(waiting) {
                        prop_assert!(window.acknowledge(Sequence(number as u64)).is_ok());
                        model.acknowledge(number);
                    }
                }
                Step::AcknowledgeUnknown(back) => {
                    let number = (given + 1).saturating_sub(back as usize);
                    let accepted = window.acknowledge(Sequence(number as u64)).is_ok();
                    prop_assert_eq!(accepted, model.acknowledge(number));
                }
                Step::Fail(index) => {
                    let number = index.index(given + 1);
                    window.fail(Sequence(number as u64));
                    model.fail(number);
                }
                Step::Keepalive { ahead } => {
                    log_end += ahead;
                    window.idle_position(Lsn::new(log_end));
                    if model.is_idle() {
                        model.confirmed = model.confirmed.max(log_end);
                    }
                }
                Step::Abandon => {
                    window.abandon_open_transaction();
                    model.open = false;
                }
                Step::ForgetPositions => {
                    window.forget_positions();
                    model.commits.clear();
                    model.open = false;
                    model.confirmed = 0;
                    log_end /= 2;
                }
            }
            let before = model.confirmed;
            model.confirm();
            prop_assert!(before <= model.confirmed);
            prop_assert_eq!(confirmed(&window), model.confirmed);
            prop_assert_eq!(window.in_transaction(), model.open);

            let unacknowledged = model.events.iter().filter(|(_, acknowledged)| !acknowledged);
            prop_assert!(window.in_flight() >= unacknowledged.count());
            prop_assert!(window.in_flight() <= LIMITS.events);
            prop_assert!(window.in_flight_bytes() <= LIMITS.bytes);
            prop_assert!(window.commits.len() <= window.in_flight() + 1);
        }
    }
}

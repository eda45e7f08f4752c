use super::*;
use rdkafka::types::RDKafkaRespErr;

fn failure(code: RDKafkaErrorCode) -> DeliveryFailure {
    DeliveryFailure::of_record(&KafkaError::MessageProduction(code), "t")
}

/// Every code the client library knows, with what is made of it. A new librdkafka brings new
/// codes; each is to be looked at and entered.
#[test]
fn every_code_of_the_client_library_is_classified() {
    let mut table = String::new();
    for number in -200..=200 {
        let Ok(native) = RDKafkaRespErr::try_from(number) else {
            continue;
        };
        let code = RDKafkaErrorCode::from(native);
        let failure = failure(code);
        table += &format!(
            "{number:>4} {code:?}: {:?} {:?} {:?}\n",
            failure.class(),
            failure.pause(),
            failure.rank(),
        );
    }
    let expected = include_str!("codes.txt");
    let differing: Vec<&str> = table
        .lines()
        .filter(|line| !expected.lines().any(|other| other == *line))
        .collect();
    assert!(differing.is_empty(), "not in codes.txt: {differing:#?}");
    assert_eq!(table.lines().count(), expected.lines().count());
}

#[test]
fn an_unlisted_code_goes_back_and_tries_again() {
    let failure = failure(RDKafkaErrorCode::OutOfOrderSequenceNumber);
    assert_eq!(failure.class(), ErrorClass::Rewind);
    assert_eq!(failure.pause(), Pause::Short);
}

#[test]
fn a_record_too_large_is_poison_and_says_what_to_raise() {
    let failure = failure(RDKafkaErrorCode::MessageSizeTooLarge);
    assert_eq!(failure.class(), ErrorClass::Poison);
    assert!(
        failure.to_string().contains("max.message.bytes"),
        "{failure}"
    );
}

#[test]
fn throttling_is_waited_for_and_never_blamed_on_the_event() {
    for code in [
        RDKafkaErrorCode::PolicyViolation,
        RDKafkaErrorCode::ThrottlingQuotaExceeded,
    ] {
        assert_eq!(failure(code).class(), ErrorClass::Rewind);
        assert_eq!(failure(code).pause(), Pause::Long);
    }
}

#[test]
fn a_lost_producer_is_replaced_whatever_the_code() {
    let failure = DeliveryFailure::of_producer(RDKafkaErrorCode::InvalidRecord, "why");
    assert_eq!(failure.class(), ErrorClass::Rewind);
    assert!(
        failure.to_string().starts_with("the Kafka producer"),
        "{failure}"
    );
}

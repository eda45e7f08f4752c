-- The consumer's side: how an event that is delivered twice takes effect once.
--
-- Delivery is at least once: after a crash of any part, the last few events can come again, with the
-- same id. So the consumer keeps the ids it has seen, in the database it writes to anyway, and
-- marks an event in the transaction that also holds its effect. examples/idempotent_consumer.rs
-- shows it.

CREATE TABLE IF NOT EXISTS processed_events (
    consumer     text NOT NULL,           -- the consumer group: each one has its own effects
    event_id     uuid NOT NULL,           -- the record's header "id", the outbox row's primary key
    processed_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (consumer, event_id)
);

-- The effect of the example: a sum, which a duplicate would make wrong.
CREATE TABLE IF NOT EXISTS claim_totals (
    currency text PRIMARY KEY,
    claims   bigint NOT NULL,
    amount   numeric NOT NULL
);

-- Ids can be forgotten once no event that old can come again: keep them for longer than the
-- topic keeps its records.
--
--   DELETE FROM processed_events WHERE processed_at < now() - interval '30 days';

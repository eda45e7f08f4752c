-- The transactional outbox: a business table and, beside it, a table of events.
--
-- A service writes both in one transaction. Either the claim and its event exist, or neither does:
-- no event is lost when the broker is down, and none is sent for a claim that was rolled back.
-- outboxd reads the inserts from the write-ahead log (WAL); it never queries or polls this table.

CREATE TABLE IF NOT EXISTS public.claims (
    id         text PRIMARY KEY,
    amount     numeric(12, 2) NOT NULL,
    currency   text NOT NULL,
    status     text NOT NULL DEFAULT 'submitted',
    created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE IF NOT EXISTS public.outbox (
    id             uuid PRIMARY KEY,      -- the event's identity: consumers tell duplicates by it
    aggregate_type text NOT NULL,         -- chooses the topic: claim -> claims.claim.events
    aggregate_id   text NOT NULL,         -- the record's key: events of one claim stay in order
    type           text NOT NULL,         -- what happened, as the header eventType
    payload        jsonb,                 -- the record's value
    created_at     timestamptz NOT NULL DEFAULT now()
);

-- What the service does for one claim, in one transaction:
--
--   BEGIN;
--   INSERT INTO claims (id, amount, currency) VALUES ('CLM-1', 1250.50, 'USD');
--   INSERT INTO outbox (id, aggregate_type, aggregate_id, type, payload)
--   VALUES (gen_random_uuid(), 'claim', 'CLM-1', 'ClaimSubmitted',
--           '{"claimId": "CLM-1", "amount": 1250.50, "currency": "USD"}');
--   COMMIT;

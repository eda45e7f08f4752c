-- The replication slot: the position in the WAL up to which events are delivered.
--
--   psql -d claims -f sql/slot.sql
--
-- outboxd makes it at its first start; made here, events are kept from this moment on. Make it
-- after the publication. From now on the server keeps all WAL from the slot's position on: drop
-- a slot that nobody reads any more, and set max_slot_wal_keep_size to what the disk can spare.

SELECT pg_create_logical_replication_slot('claims_outbox_slot', 'pgoutput')
WHERE NOT EXISTS (SELECT FROM pg_replication_slots WHERE slot_name = 'claims_outbox_slot');

-- So that outboxd knows a slot that is lost from one that was never made.
COMMENT ON PUBLICATION claims_outbox_pub IS 'outboxd slot=claims_outbox_slot';

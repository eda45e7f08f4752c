-- What the outbox publishes. Run by the owner of the table, once:
--
--   psql -d claims -f sql/publication.sql
--
-- outboxd makes such a publication itself where publication.autocreate.mode allows it and its role
-- owns the table and may CREATE in the database. Made here, the role needs neither.
--
-- Inserts are the events. Updates are published only so that outboxd can say that one happened
-- (the router warns of it, or fails, as table.op.invalid.behavior tells it to); that needs the
-- primary key. Deletes and truncates stay out: cleaning the outbox is nobody's event.
--
-- Make it before the replication slot: the slot reads the publication as it was at each moment
-- of the WAL, and fails on a row that is older than the publication.

CREATE PUBLICATION claims_outbox_pub FOR TABLE public.outbox
    WITH (publish = 'insert, update');

-- Removes old rows of the outbox, a thousand in a transaction, so that no lock is held for long.
--
--   psql -d claims -v days=7 -f sql/cleanup.sql        default: older than 7 days
--
-- Safe at any time, even while outboxd is stopped: events are read from the WAL, where the insert
-- stays until the slot has confirmed it, and not from the table. The deletes yield no events.
-- The rows still serve one purpose: if the slot is ever lost, they are what can be sent again. So
-- keep them for longer than the longest outage you plan for.

\if :{?days}
\else
  \set days 7
\endif

-- A DO block takes no variables of psql's.
SELECT set_config('outbox.keep_days', :'days', false) AS keep_days \gset

DO $$
DECLARE
    old constant timestamptz :=
        now() - make_interval(days => current_setting('outbox.keep_days')::int);
    deleted bigint;
BEGIN
    LOOP
        DELETE FROM public.outbox
        WHERE id IN (SELECT id FROM public.outbox WHERE created_at < old LIMIT 1000);
        GET DIAGNOSTICS deleted = ROW_COUNT;
        COMMIT;
        EXIT WHEN deleted = 0;
    END LOOP;
END
$$;

-- How far each logical replication slot is behind. For PostgreSQL 14 to 18.
--
--   active       a reader (outboxd) is connected
--   wal_status   reserved or extended: well; unreserved: soon lost; lost: the slot is of no use any
--                more, events have to be sent again from the table
--   retained     WAL the server keeps on disk for this slot: it grows while the reader is away
--   unconfirmed  WAL written since the position that the reader confirmed last
--   safe         WAL that may still be written before the slot is lost; empty without the limit
--                max_slot_wal_keep_size, where a forgotten slot fills the disk instead

SELECT slot_name,
       active,
       wal_status,
       restart_lsn,
       confirmed_flush_lsn,
       pg_size_pretty(pg_wal_lsn_diff(now_at.lsn, restart_lsn)) AS retained,
       pg_size_pretty(pg_wal_lsn_diff(now_at.lsn, confirmed_flush_lsn)) AS unconfirmed,
       pg_size_pretty(safe_wal_size) AS safe
FROM pg_replication_slots,
     (SELECT CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn()
                  ELSE pg_current_wal_lsn() END) AS now_at (lsn)
WHERE slot_type = 'logical'
ORDER BY slot_name;

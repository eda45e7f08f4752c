-- The role that outboxd connects as: it may read the WAL and the outbox, and write nothing.
--
-- Run by a superuser in the database of the outbox:
--
--   psql -d claims -v password=... -f sql/role.sql
--
-- REPLICATION is what reading the WAL asks for. Managed services have their own words for it:
-- GRANT rds_replication TO debezium on Amazon RDS, ALTER ROLE by the server's admin on Azure.

SELECT 'CREATE ROLE debezium'
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'debezium') \gexec

ALTER ROLE debezium LOGIN REPLICATION PASSWORD :'password';

SELECT current_database() AS database \gset
GRANT CONNECT ON DATABASE :"database" TO debezium;
GRANT USAGE ON SCHEMA public TO debezium;
GRANT SELECT ON public.outbox TO debezium;

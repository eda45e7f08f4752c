#!/bin/sh
# Run by the postgres image once, in the new and empty database: the outbox, outboxd's role, and
# what is published.
set -eu
for file in outbox role publication; do
  psql -v ON_ERROR_STOP=1 -v password="$OUTBOXD_PASSWORD" -U postgres -d "$POSTGRES_DB" \
    -f "/sql/$file.sql"
done

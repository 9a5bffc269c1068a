#!/bin/sh
# Prepares the database, once per start of the farm in docker/compose.yaml; repeating it changes nothing.
set -eu
farm db upgrade
# On stdin, so that no process list shows it.
printf '%s\n' "$READER_PASSWORD" | farm db reader --password-file /dev/stdin
# The service listens for other machines only where there is a key. Its token stays in this volume.
if [ ! -s /var/lib/farm/token ]; then
    farm keys revoke compose 2>/dev/null || true
    (umask 077 && farm keys add compose >/var/lib/farm/token)
fi

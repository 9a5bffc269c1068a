#!/bin/sh
# Prepares the database, once per start of the farm in docker/compose.yaml; repeating it changes nothing.
set -eu
# In files, so that no process list shows them.
passwords=$(mktemp -d)
for role in OWNER WORKER SUBMITTER SERVICE READER; do
    name=$(echo "farm_$role" | tr '[:upper:]' '[:lower:]')
    (umask 077 && eval "printf '%s\n' \"\$${role}_PASSWORD\"" >"$passwords/$name")
done
FARM_DATABASE_URL=$ADMIN_URL farm db roles --passwords "$passwords"
rm -r "$passwords"
farm db upgrade
# The service listens for other machines only where there is a key. Its token stays in this volume.
if [ ! -s /var/lib/farm/token ]; then
    farm keys revoke compose 2>/dev/null || true
    (umask 077 && farm keys add compose >/var/lib/farm/token)
fi

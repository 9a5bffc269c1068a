#!/bin/sh
# Writes into docker/.env, which Compose reads, a random password for each part that has none there yet.
set -eu
umask 077
cd "$(dirname "$0")"
touch .env
[ -z "$(tail -c 1 .env)" ] || echo >>.env
for name in DATABASE OWNER WORKER SUBMITTER SERVICE READER REDIS GRAFANA; do
    if ! grep -q "^${name}_PASSWORD=." .env; then
        # Letters and digits only: most of them become parts of URLs.
        password=$(od -A n -N 24 -t x1 /dev/urandom | tr -d ' \n')
        echo "${name}_PASSWORD=$password" >>.env
    fi
done

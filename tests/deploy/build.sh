#!/bin/sh
# Builds docker/Dockerfile for real where no container engine is: build.sh FOLDER. Debian's buildah builds, without
# namespaces of its own, on a stand-in for python:3.12-slim-bookworm that debootstrap makes: Debian and its Python.
# Each image is then in FOLDER/NAME: its file system in `root`, its configuration in `config.json`. Run it as root;
# a second run builds only what has changed. `build.sh FOLDER away` removes all of it.
set -eu
folder=$(mkdir -p "$1" && cd "$1" && pwd)
cd "$(dirname "$0")/../.."
export STORAGE_DRIVER=overlay BUILDAH_ISOLATION=chroot BUILDAH_FORMAT=docker BUILDAH_LAYERS=true
b() {
    buildah --root "$folder/storage" --runroot "$folder/run" "$@"
}

! [ -d "$folder/storage" ] || b rm --all >/dev/null
if [ "${2:-}" = away ]; then
    rm -rf "$folder"
    exit
fi

if ! [ -e "$folder/base.tar" ]; then
    rm -rf "$folder/base"
    debootstrap --variant=minbase --include=python3,python3-venv,python3-pip,python-is-python3,ca-certificates \
        bookworm "$folder/base" >"$folder/debootstrap.log"
    rm -rf "$folder/base/var/cache/apt/archives" "$folder/base/var/lib/apt/lists"
    tar -C "$folder/base" -cf "$folder/base.tar.new" .
    rm -rf "$folder/base"
    mv "$folder/base.tar.new" "$folder/base.tar"
fi
printf 'FROM scratch\nADD base.tar /\nENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n' \
    >"$folder/Containerfile"
b bud --quiet --tag stand-in -f "$folder/Containerfile" "$folder"

# How pip reaches its index is this machine's business: it is shown to the build and not written into an image.
certificates=$(python3 -m pip config get global.cert 2>/dev/null || echo /etc/ssl/certs/ca-certificates.crt)
{
    echo '[global]'
    echo "cert = $certificates"
    index=$(python3 -m pip config get global.index-url 2>/dev/null || true)
    [ -z "$index" ] || echo "index-url = $index"
} >"$folder/pip.conf"
for name in farm worker-core; do
    b bud --target "$name" --tag "$name" -f docker/Dockerfile --ignorefile docker/Dockerfile.dockerignore \
        --build-arg BASE=localhost/stand-in --secret id=pip,src="$folder/pip.conf" \
        --volume "$certificates:$certificates:ro" .
    mkdir -p "$folder/$name"
    ln -sfn "$(b mount "$(b from "localhost/$name")")" "$folder/$name/root"
    b inspect --type image "localhost/$name" >"$folder/$name/config.json"
done
b images

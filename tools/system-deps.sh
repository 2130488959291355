#!/bin/sh
# Debian packages that some tests use: Chromium looks at the reports.
# Without root or apt it says what is missing and leaves; tests that need a part then skip.
set -eu
packages="chromium"
missing=""
for package in $packages; do
    dpkg -s "$package" >/dev/null 2>&1 || missing="$missing $package"
done
[ -z "$missing" ] && { echo "system packages: all there"; exit 0; }
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
    echo "system packages missing:$missing (install them as root; some tests skip without)"
    exit 0
fi
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $missing

#!/bin/sh
# Debian packages that some tests use. Chromium looks at the reports and prints them, poppler reads
# the prints, Node.js runs the script of the survey page by itself, PostgreSQL is read from,
# Java runs Spark, two small fonts draw Persian and Chinese labels (2.5 MB; Noto's are 65).
# What is there already, from whichever package, is left alone.
# Without root or apt it says what is missing and leaves; tests that need a part then skip.
set -eu

missing=""
need() { # PACKAGE COMMAND...: the package, unless the command succeeds
    package=$1
    shift
    "$@" >/dev/null 2>&1 || missing="$missing $package"
}
has_server() { command -v postgres || ls /usr/lib/postgresql/*/bin/postgres; }
has_font() { fc-list ":lang=$1" | grep -q .; }

need chromium command -v chromium
need poppler-utils command -v pdftotext
need nodejs command -v node
need postgresql has_server
need default-jre-headless command -v java
need fonts-dejavu-core has_font fa
need fonts-wqy-microhei has_font zh-cn

[ -z "$missing" ] && { echo "system packages: all there"; exit 0; }
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
    echo "system packages missing:$missing (install them as root; some tests skip without)"
    exit 0
fi
echo "system packages: installing$missing"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# shellcheck disable=SC2086 # a list of words
apt-get install -qq -y --no-install-recommends -o Dpkg::Use-Pty=0 $missing >/dev/null

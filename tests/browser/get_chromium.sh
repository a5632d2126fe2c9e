#!/bin/sh
# Make sure that there is a browser: one on the PATH, else Debian's package.
set -eu

has() { command -v "$1" >/dev/null 2>&1; }

if has chromium || has chromium-browser || has google-chrome; then
    exit 0
fi
if ! has apt-get; then
    echo "The browser tests need Chromium: install it, so that 'chromium', 'chromium-browser' or 'google-chrome' is on the PATH." >&2
    exit 1
fi
if [ "$(id -u)" -eq 0 ]; then
    as_root=""
elif has sudo; then
    as_root="sudo"
else
    echo "The browser tests need Chromium; as root: apt-get install chromium" >&2
    exit 1
fi
echo "installing chromium with apt-get, once"
$as_root apt-get update -qq
$as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium

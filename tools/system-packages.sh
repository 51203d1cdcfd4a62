#!/bin/sh
# Installs the Debian packages of system-packages.txt (or of the list given) that are missing.
# As root they are installed; otherwise the command to type is printed and the tests that
# need them say so when they are skipped.
set -eu
list=${1:-"$(dirname "$0")/../system-packages.txt"}

missing=
for package in $(sed 's/#.*//' "$list"); do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' ||
        missing="$missing $package"
done
[ -n "$missing" ] || exit 0

command="apt-get install --yes --no-install-recommends$missing"
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
    printf 'Missing system packages; tests that need them are skipped. To install them:\n  sudo %s\n' "$command" >&2
    exit 0
fi
export DEBIAN_FRONTEND=noninteractive
# Tests start the servers they need; nothing is to run beyond them. Debian asks this file before it starts one.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod +x "$policy"
fi
for pause in 5 15 0; do
    # shellcheck disable=SC2086  # the command is meant to be split
    if apt-get update --quiet --quiet && $command >&2; then exit 0; fi
    [ "$pause" = 0 ] || sleep "$pause"
done
printf 'error: could not install:%s\n' "$missing" >&2
exit 1

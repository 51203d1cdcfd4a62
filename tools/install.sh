#!/bin/sh
# Makes .venv in the repository and installs Linnet into it, editable, at the locked versions.
#
#   tools/install.sh core    what a user gets
#   tools/install.sh dev     also what tests, checks and docs need
#
# Needs only Python >= 3.11 with venv. Does nothing when what is there is already right.
set -eu
what=${1:?"say what to install: core or dev"}
cd "$(dirname "$0")/.."
venv=.venv
python=$venv/bin/python
stamp=$venv/.installed

say() { printf '%s\n' "$*" >&2; }
die() { say "error: $*"; exit 1; }

case $what in
    core | dev) ;;
    *) die "cannot install '$what'; say core or dev" ;;
esac

# Path, locks and what is compiled: an environment that was moved, or made from others, is not this one.
files=$(cat tools/install.sh requirements-core.lock requirements-dev.lock pyproject.toml hatch_build.py \
    src/linnet/*/compiled/*.[ch] | cksum)
state() { printf '%s\n%s\n%s\n' "$1" "$(pwd)" "$files"; }
there=$(cat "$stamp" 2>/dev/null || true)
if [ -x "$python" ] && { [ "$there" = "$(state dev)" ] || [ "$there" = "$(state "$what")" ]; }; then
    exit 0
fi

is_recent() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

find_python() {
    for candidate in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
        if command -v "$candidate" >/dev/null 2>&1 && is_recent "$candidate"; then
            printf '%s' "$candidate"
            return
        fi
    done
    found=$("${PYTHON:-python3}" --version 2>/dev/null || echo "no ${PYTHON:-python3}")
    die "Python 3.11 or newer is needed, found: $found.
  On Debian or Ubuntu:  sudo apt-get install python3 python3-venv
  Or name another one:  make PYTHON=/path/to/python3.11 ..."
}

# Registries and networks have bad moments: three attempts before giving up.
attempt() {
    for pause in 2 6 0; do
        "$@" && return 0
        [ "$pause" = 0 ] || { say "failed, once more in $pause s: $*"; sleep "$pause"; }
    done
    return 1
}

make_venv() {
    base=$(find_python)
    "$base" -c 'import venv, ensurepip' 2>/dev/null ||
        die "$base has no venv module.
  On Debian or Ubuntu:  sudo apt-get install python3-venv"
    say "Making $venv with $("$base" --version)"
    rm -rf "$venv"
    "$base" -m venv "$venv" || die "$base -m venv $venv failed (see above).
  On Debian or Ubuntu:  sudo apt-get install python3-venv"
}

# uv installs in seconds what takes pip a minute; where it cannot be had, or fails, pip does the same.
install() {
    if "$python" -m uv --version >/dev/null 2>&1; then
        attempt "$python" -m uv pip install --quiet --python "$python" "$@" && return 0
        say "uv could not install; trying pip"
    fi
    attempt "$python" -m pip install --quiet --disable-pip-version-check "$@" ||
        die "could not install: $*
  Check the network and pip's settings, then run the same command again."
}

if ! is_recent "$python" || [ "$(printf '%s\n' "$there" | sed -n 2p)" != "$(pwd)" ]; then
    make_venv
fi
rm -f "$stamp"
if ! "$python" -m uv --version >/dev/null 2>&1; then
    attempt "$python" -m pip install --quiet --disable-pip-version-check "$(grep '^uv==' requirements-dev.lock)" ||
        say "uv could not be installed; going on with pip"
fi
say "Installing Linnet ($what) into $venv"
install -r "requirements-$what.lock"
install --no-deps --editable .
state "$what" >"$stamp"

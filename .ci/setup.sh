# Sourced by .ci/demo, .ci/test and .ci/run, from the project's root. Makes .venv; does nothing when it is up to date.
# POSIX sh; needs Python 3.11 or newer with pip or venv, or root (or sudo) on a system with apt to fetch them.

say() { printf '\n== %s\n' "$*"; }

fail() { printf '\nSet-up stopped: %s\n' "$*" >&2; exit 1; }

# apt_install PACKAGE… : false if this system has no apt, or we may not use it.
apt_install() {
    command -v apt-get >/dev/null 2>&1 || return 1
    as_root=''
    if [ "$(id -u)" != 0 ]; then
        sudo -n true 2>/dev/null || return 1
        as_root='sudo -n'
    fi
    say "Installing system packages: $*"
    $as_root apt-get update -qq &&
        DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -qq --no-install-recommends "$@"
}

find_python() {
    for candidate in ${PYTHON:-} python3 python3.13 python3.12 python3.11 python3.14; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$candidate"
            return
        fi
    done
    return 1
}

need_python() {
    python=$(find_python) && return
    apt_install python3 python3-venv >&2 && python=$(find_python) && return
    fail "no Python 3.11 or newer found (looked for python3 and python3.11 to python3.14).
Install one, or name it: PYTHON=/path/to/python3 sh ${0}"
}

# Debian splits ensurepip off into python3-venv; pip can fill an environment that was made without it.
make_venv() {
    rm -rf .venv
    "$python" -m venv .venv >/dev/null 2>&1 && return
    rm -rf .venv
    "$python" -m venv --without-pip .venv >/dev/null 2>&1 &&
        "$python" -m pip --python .venv/bin/python install -q pip 2>/dev/null && return
    rm -rf .venv
    apt_install python3-venv && "$python" -m venv .venv && return
    rm -rf .venv
    fail "$python can make no virtual environment: it has neither ensurepip nor a pip that could stand in for it,
and without root (or sudo) and apt it cannot be installed from here.
Install the package python3-venv (Debian, Ubuntu) or python3-pip and run this again."
}

# set_up EXTRAS : .venv holds this checkout with EXTRAS ('' or '[dev]').
# The stamp names all that an environment depends on, its own path included: scripts in it hold that path.
set_up() {
    [ -f pyproject.toml ] || fail "run this from the project's root, where pyproject.toml is."
    wanted="$(pwd) $(cksum <pyproject.toml)"
    is_set_up "$1" || is_set_up '[dev]' || install_into_venv "$1"
}

is_set_up() {
    [ -x .venv/bin/python ] && [ "$(cat ".venv/set-up$1" 2>/dev/null)" = "$wanted" ]
}

install_into_venv() {
    need_python
    if ! .venv/bin/python -m pip --version >/dev/null 2>&1 || ! [ "$(cat .venv/place 2>/dev/null)" = "$(pwd)" ]; then
        say "Making a virtual environment in .venv with $("$python" --version 2>&1)"
        make_venv
        pwd >.venv/place
    fi
    say "Installing lakehouse-platform$1 into .venv (the first time takes a minute or two)"
    .venv/bin/python -m pip install -q --disable-pip-version-check --no-input -e ".$1" ||
        fail "pip could not install the packages; its message stands above. Is the package index reachable?"
    printf '%s\n' "$wanted" >".venv/set-up$1"
}

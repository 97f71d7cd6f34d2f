# Makes the last layer of an image, as root: a user with the operator's ids, and what the image lacks.
# Arguments: uid, gid, then manager, command, name and version of each package.
set -eu
uid=$1 gid=$2
shift 2

# entry FILE ID LINE: adds LINE to FILE unless one there has the id in its third field. Only what every sh has is used.
entry() {
    gap=
    [ -e "$1" ] || : >"$1"
    while IFS= read -r line || { [ -n "$line" ] && gap='
'; }; do
        rest=${line#*:*:}
        [ "${rest%%:*}" != "$2" ] || return 0
    done <"$1"
    printf '%s%s\n' "$gap" "$3" >>"$1"
}

if [ "$uid" != 0 ]; then
    entry /etc/group "$gid" "group$gid:x:$gid:"
    entry /etc/passwd "$uid" "user$uid:x:$uid:$gid::/home/user$uid:/bin/sh"
    if mkdir -p "/home/user$uid"; then chown "$uid:$gid" "/home/user$uid"; fi
fi

has() { command -v "$1" >/dev/null 2>&1; }

install_system() {
    if has apt-get; then
        export DEBIAN_FRONTEND=noninteractive
        apt-get update -q
        apt-get install -qy --no-install-recommends "$@"
        rm -rf /var/lib/apt/lists/*
    elif has apk; then
        apk add --no-cache "$@"
    elif has dnf; then
        dnf install -y "$@"
        dnf clean all
    elif has microdnf; then
        microdnf install -y "$@"
        microdnf clean all
    elif has zypper; then
        zypper --non-interactive install "$@"
    else
        echo "the image has no $*, and no package manager that could install it" >&2
        exit 1
    fi
}

install_npm() {
    has npm || install_system npm
    npm install --global --no-fund --no-audit --cache /tmp/npm-cache "$1@$2"
    rm -rf /tmp/npm-cache
}

# What is installed with the image's own package manager comes first, all at once.
missing=
while [ "${1-}" = system ]; do
    has "$2" || missing="$missing $3"
    shift 4
done
# shellcheck disable=SC2086
[ -z "$missing" ] || install_system $missing
while [ "${1-}" = npm ]; do
    has "$2" || install_npm "$3" "$4"
    shift 4
done

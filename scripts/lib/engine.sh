# A Docker engine for the tests: the one that runs, or one of our own that ends with us.
# Sourced by scripts/test. Needs: say, as_root, $scratch.

engine_pid=

# Answers whether an engine can be talked to.
engine_answers() { docker version --format '{{.Server.Version}}' >/dev/null 2>&1; }

# Where a capability is missing from the bounding set, runc can not grant it and refuses `--privileged` altogether. The tests'
# own engine then gets a runtime that leaves the capability out.
write_runtime() {
    cat >"$1" <<'RUNTIME'
#!/bin/sh
previous=
for word in "$@"; do
    case $previous in
    --bundle | -b) config=$word/config.json ;;
    --process | -p) config=$word ;;
    esac
    previous=$word
done
[ -z "${config:-}" ] || sed -i 's/"CAP_SYS_RESOURCE",//g' "$config"
exec runc "$@"
RUNTIME
    chmod +x "$1"
}

start_engine() {
    if engine_answers; then
        return 0
    fi
    if [ "$(id -u)" != 0 ] || ! command -v dockerd >/dev/null; then
        echo "SKIPPED: no engine answers and none may be started; tests that need containers will not run" >&2
        return 1
    fi
    say "starting an engine"
    local flags=(--data-root "$scratch/engine" --exec-root "$scratch/engine-run" --pidfile "$scratch/engine.pid"
        --host "unix://$scratch/engine.sock")
    if ! ((0x$(awk '/^CapBnd/ {print $2}' /proc/self/status) >> 24 & 1)); then
        write_runtime "$scratch/runtime"
        flags+=(--add-runtime "tests=$scratch/runtime" --default-runtime tests)
    fi
    dockerd "${flags[@]}" >"$scratch/engine.log" 2>&1 &
    engine_pid=$!
    export DOCKER_HOST=unix://$scratch/engine.sock
    local tries
    for tries in $(seq 100); do
        if engine_answers; then return 0; fi
        sleep 0.2
    done
    tail -n 20 "$scratch/engine.log" >&2
    echo "the engine did not come up within 20 s" >&2
    return 1
}

# Makes the image `abide-test-base` from Debian packages: no registry is involved. The root file system is kept below target/
# and used again.
make_base_image() {
    if docker image inspect abide-test-base >/dev/null 2>&1; then
        return 0
    fi
    local cache=target/test-images/base.tar
    if [ ! -s "$cache" ]; then
        say "making the base image"
        mkdir -p "${cache%/*}"
        as_root debootstrap --variant=minbase --include=procps,util-linux stable "$scratch/base" >"$scratch/debootstrap.log" 2>&1 ||
            { tail -n 20 "$scratch/debootstrap.log" >&2; return 1; }
        as_root tar -C "$scratch/base" --exclude=./dev/* --exclude=./var/cache/* --exclude=./var/lib/apt/lists/* -cf "$cache.new" .
        mv "$cache.new" "$cache"
    fi
    docker import "$cache" abide-test-base >/dev/null
}

# Makes the image `abide-test-systemd`: the base with systemd, logind, an SSH server, and two people as whom root can log in.
# Cached like the base; remove the tarball below target/ after a change here.
make_systemd_image() {
    if docker image inspect abide-test-systemd >/dev/null 2>&1; then
        return 0
    fi
    local cache=target/test-images/systemd.tar
    if [ ! -s "$cache" ]; then
        say "making the systemd image"
        local container
        container=$(docker create -i abide-test-base sh -eu)
        if ! docker start -ai "$container" >"$scratch/systemd-image.log" 2>&1 <<'SETUP'
export DEBIAN_FRONTEND=noninteractive
apt-get update -q
apt-get install -qy --no-install-recommends systemd systemd-sysv dbus dbus-user-session libpam-systemd \
    openssh-server openssh-client polkitd procps psmisc tmux
# Nothing here has hardware, and a container that waits for it boots late or degraded.
systemctl mask systemd-udevd.service systemd-modules-load.service getty.target console-getty.service \
    apt-daily.timer apt-daily-upgrade.timer
systemctl enable ssh.service
# The user manager of a closed login stays for ten seconds by default; no test has to wait that long.
mkdir -p /etc/systemd/logind.conf.d
printf '[Login]\nUserStopDelaySec=1\n' >/etc/systemd/logind.conf.d/tests.conf
printf 'UseDNS no\nPrintMotd no\n' >/etc/ssh/sshd_config.d/tests.conf
ssh-keygen -q -t ed25519 -N '' -f /root/.ssh/id_ed25519
for user in ada bob; do
    useradd -m -s /bin/bash "$user"
    install -d -m 700 -o "$user" -g "$user" "/home/$user/.ssh"
    install -m 600 -o "$user" -g "$user" /root/.ssh/id_ed25519.pub "/home/$user/.ssh/authorized_keys"
done
: >/etc/machine-id
rm -rf /var/lib/apt/lists/* /var/cache/apt/*
SETUP
        then
            tail -n 20 "$scratch/systemd-image.log" >&2
            docker rm -f "$container" >/dev/null
            return 1
        fi
        docker export "$container" >"$cache.new"
        docker rm "$container" >/dev/null
        mv "$cache.new" "$cache"
    fi
    docker import "$cache" abide-test-systemd >/dev/null
}

stop_engine() {
    [ -n "$engine_pid" ] || return 0
    kill "$engine_pid" 2>/dev/null || true
    wait "$engine_pid" 2>/dev/null || true
    # What the engine mounted below the scratch directory must be gone before that is removed.
    awk -v dir="$scratch" 'index($2, dir) == 1 {print $2}' /proc/mounts | sort -r | xargs -r -n1 umount 2>/dev/null || true
}

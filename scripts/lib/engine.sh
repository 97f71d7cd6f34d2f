# A Docker engine for the tests: the one that runs, or one of our own that ends with us.
# Sourced by scripts/test. Needs: say, as_root, cached, $scratch, $run.

engine_pid=

# Succeeds if an engine answers.
engine_answers() { docker version --format '{{.Server.Version}}' >/dev/null 2>&1; }

# Where a capability is missing from the bounding set, runc cannot grant it and refuses `--privileged` altogether. The tests'
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
[ -z "${config:-}" ] || sed -i 's/"CAP_SYS_RESOURCE",//g; s/,"rlimits":\[[^]]*\]//; s/"rlimits":\[[^]]*\],//' "$config"
exec runc "$@"
RUNTIME
    chmod +x "$1"
}

start_engine() {
    if engine_answers; then
        return 0
    fi
    if [ "$(id -u)" != 0 ] || ! command -v dockerd >/dev/null; then
        echo "no engine answers, and only root with dockerd installed can start one" >&2
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

# Has the podman command use containers and images of the run's own, on the runtime that works here. It needs no engine that runs.
set_up_podman() {
    write_runtime "$scratch/podman-runtime"
    cat >"$scratch/containers.conf" <<CONF
[engine]
runtime = "tests"
cgroup_manager = "cgroupfs"
events_logger = "file"
[engine.runtimes]
tests = ["$scratch/podman-runtime"]
[network]
network_config_dir = "$scratch/podman-networks"
CONF
    printf '[storage]\ndriver = "overlay"\ngraphroot = "%s"\nrunroot = "%s"\n' \
        "$scratch/podman" "$scratch/podman-run" >"$scratch/storage.conf"
    export CONTAINERS_CONF=$scratch/containers.conf CONTAINERS_STORAGE_CONF=$scratch/storage.conf
    cached box-image "$(image_key box)" set_up_image box && podman import --quiet "$cached" "localhost/abide-test-box:$run" >/dev/null
}

# Debian packages of the base image.
base_packages=procps,util-linux

# Leaves in $cached the root file system of a Debian with little in it, made from packages: no registry is involved.
base_system() { cached base-image "$(echo stable "$base_packages" | cache_key)" bootstrap_debian; }

bootstrap_debian() {
    say "making the base image"
    as_root debootstrap --variant=minbase --include="$base_packages" stable "$scratch/base" >"$scratch/debootstrap.log" 2>&1 ||
        { tail -n 20 "$scratch/debootstrap.log" >&2; return 1; }
    as_root tar -C "$scratch/base" --exclude=./dev/* --exclude=./var/cache/* --exclude=./var/lib/apt/lists/* -c . >"$1"
}

# make_image NAME [FLAG…]: makes the image `abide-test-NAME:$run`: the base, after scripts/lib/images/NAME.sh ran in it. It has a tag of the
# run's own, and is removed with the run: on an engine that others use, too, nothing is left or taken away.
make_image() {
    cached "$1-image" "$(image_key "$1")" set_up_image "$1" &&
        docker import "${@:2}" "$cached" "abide-test-$1:$run" >/dev/null
}

image_key() { { echo "$base_packages" && cat "scripts/lib/images/$1.sh"; } | cache_key; }

set_up_image() {
    local name=$1 archive=$2 container
    base_system || return 1
    say "making the $name image"
    docker import "$cached" "abide-test-base:$run" >/dev/null || return 1
    container=$(docker create -i --label "abide-test-run=$run" "abide-test-base:$run" sh)
    if ! docker start -ai "$container" <"scripts/lib/images/$name.sh" >"$scratch/$name-image.log" 2>&1; then
        tail -n 20 "$scratch/$name-image.log" >&2
        return 1
    fi
    docker export "$container" >"$archive"
}

# Lists what the docker command `$@` lists, if it belongs to a home of abide below the scratch directory.
of_test_homes() {
    local name='{{.Name}}'
    [ "$1" != ps ] || name='{{.ID}}'
    docker "$@" --filter label=abide.home --format "$name {{.Label \"abide.home\"}}" |
        awk -v dir="$scratch/" 'index($2, dir) == 1 {print $1}'
}

# Removes what this run made on the engine, whether the engine is its own or not.
clean_engine() {
    engine_answers || return 0
    docker ps -aq --filter "label=abide-test-run=$run" | xargs -r docker rm -f -v >/dev/null 2>&1 || true
    # What a test's own home left, if the test was killed.
    of_test_homes ps -a | xargs -r docker rm -f -v >/dev/null 2>&1 || true
    of_test_homes network ls | xargs -r docker network rm >/dev/null 2>&1 || true
    of_test_homes volume ls | xargs -r docker volume rm >/dev/null 2>&1 || true
    docker image rm "abide-test-systemd:$run" "abide-test-box:$run" "abide-test-dind:$run" "abide-test-base:$run" >/dev/null 2>&1 || true
}

stop_engine() {
    clean_engine
    [ ! -e "$scratch/storage.conf" ] || podman system reset --force >/dev/null 2>&1 || true
    [ -n "$engine_pid" ] || return 0
    kill "$engine_pid" 2>/dev/null || true
    wait "$engine_pid" 2>/dev/null || true
    # What the engine mounted below the scratch directory must be gone before that is removed.
    awk -v dir="$scratch" 'index($2, dir) == 1 {print $2}' /proc/mounts | sort -r | xargs -r -n1 umount 2>/dev/null || true
}

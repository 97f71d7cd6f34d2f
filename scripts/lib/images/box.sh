# Runs inside abide-test-base and makes it abide-test-box: what an instance in a container needs, and what its tests look around with.
set -eu
export DEBIAN_FRONTEND=noninteractive
apt-get update -q
apt-get install -qy --no-install-recommends git openssh-client ca-certificates curl tmux iproute2 netcat-openbsd python3-minimal
rm -rf /var/lib/apt/lists/* /var/cache/apt/*

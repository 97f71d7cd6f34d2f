# Runs inside abide-test-base and makes it abide-test-dind: an engine that behaves like the image `docker:dind` with TLS.
set -eu
export DEBIAN_FRONTEND=noninteractive
apt-get update -q
apt-get install -qy --no-install-recommends docker.io docker-cli iptables openssl
rm -rf /var/lib/apt/lists/* /var/cache/apt/*
cat >/usr/local/bin/dockerd-entrypoint.sh <<'ENTRYPOINT'
#!/bin/sh
set -eu
cd "$DOCKER_TLS_CERTDIR"
mkdir -p ca server client
[ -e ca/cert.pem ] || openssl req -x509 -newkey rsa:2048 -nodes -days 365 -subj "/CN=ca" -keyout ca/key.pem -out ca/cert.pem
for side in server client; do
    openssl req -newkey rsa:2048 -nodes -subj "/CN=$side" -keyout $side/key.pem -out $side/csr.pem
    printf 'subjectAltName=DNS:docker,DNS:localhost,IP:127.0.0.1\nextendedKeyUsage=%sAuth\n' $side >$side/ext
    openssl x509 -req -days 365 -in $side/csr.pem -CA ca/cert.pem -CAkey ca/key.pem -CAcreateserial -extfile $side/ext -out $side/cert.pem
    cp ca/cert.pem $side/ca.pem
done
rm -f /var/run/docker.pid /run/docker/containerd/*.pid
exec dockerd --host unix:///var/run/docker.sock --host tcp://0.0.0.0:2376 --tlsverify \
    --tlscacert server/ca.pem --tlscert server/cert.pem --tlskey server/key.pem
ENTRYPOINT
chmod +x /usr/local/bin/dockerd-entrypoint.sh

# Runs inside abide-test-base and makes it abide-test-systemd: systemd, logind, an SSH server, and two people as whom root can log in.
set -eu
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

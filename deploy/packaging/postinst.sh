#!/bin/sh
# After the files are there. The unit is neither enabled nor started: it waits for a
# configuration. An upgrade restarts it if it runs.
set -eu

# The unit wants the file; only root may read it.
[ -e /etc/sse-server/tokens ] || (umask 077 && : >/etc/sse-server/tokens)

[ -d /run/systemd/system ] || exit 0
systemctl daemon-reload
systemctl try-restart sse-server.service

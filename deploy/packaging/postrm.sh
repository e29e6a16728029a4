#!/bin/sh
# After the files have gone. A purge also takes what the package and the unit made.
set -eu

if [ "${1-}" = purge ]; then
	rm -f /etc/sse-server/tokens
	rmdir --ignore-fail-on-non-empty /etc/sse-server 2>/dev/null || :
	rm -rf /var/lib/sse-server /var/lib/private/sse-server
fi
[ ! -d /run/systemd/system ] || systemctl daemon-reload

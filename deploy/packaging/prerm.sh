#!/bin/sh
# Before the files go: a removal stops the units, an upgrade leaves them running.
set -eu

case "${1-}" in
remove | 0) # dpkg's word, and rpm's number of packages that stay
	[ ! -d /run/systemd/system ] || systemctl disable --now sse-server.socket sse-server.service
	;;
esac

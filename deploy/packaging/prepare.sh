#!/bin/sh
# Makes what packages hold beside the programs, in bin/share: man pages, by help2man from
# what the programs say of their flags, and units with the path that packages install to.
set -eu
cd "$(dirname "$0")/../.."
command -v help2man >/dev/null || { echo 'help2man is missing: apt-get install help2man' >&2; exit 1; }

make --no-print-directory build docsearch
rm -rf bin/share && mkdir -p bin/share/man bin/share/systemd
for unit in deploy/sse-server.service deploy/sse-server.socket; do
	[ ! -e "$unit" ] || sed 's,/usr/local/bin/,/usr/bin/,' "$unit" >"bin/share/systemd/${unit##*/}"
done

COLUMNS=100 LC_ALL=C SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export COLUMNS LC_ALL SOURCE_DATE_EPOCH

# page COMMAND TITLE [FLAG] makes the page of a program or of one of its commands, whose help FLAG prints.
page() {
	name=$(echo "$1" | tr ' ' -)
	# help2man knows only headings with a colon, and no commands of programs.
	help2man --no-info --help-option="${3:---help}" --name "$2" "bin/$1" |
		sed -e '/^\.PP$/{N;s/^\.PP\n\([A-Z][a-z ]*\)$/.SS "\1:"/;}' \
			-e '1,/^\.SH SYNOPSIS/s/^'"${1%% *}"' \\- /'"$name"' \\- /' \
			-e 's/^\.TH [A-Z-]*/.TH '"$(echo "$name" | tr a-z A-Z)"'/' |
		gzip -9n >"bin/share/man/$name.1.gz"
}

page sse-server 'MCP gateway' --help-all
page docsearch 'search the documents in folders'
bin/docsearch --help | sed -n '/^Commands:/,/^$/s/^  \([a-z][a-z-]*\)  .*/\1/p' | while read -r command; do
	page "docsearch $command" "a command of docsearch"
done

#!/bin/sh
# Publishes the packages in a folder that installers has made:  publish.sh dist/installers/npm
# A package that is published already is left out, so it may be run again. mcp-sse comes last, when what it
# depends on is there.
set -eu
cd "$1"

version() { node -p "require('./$1/package.json').version"; }
name() { node -p "require('./$1/package.json').name"; }

for folder in $(ls | grep -v '^mcp-sse$') mcp-sse; do
	package=$(name "$folder") version=$(version "$folder")
	if [ "$(npm view "$package@$version" version 2>/dev/null)" = "$version" ]; then
		echo "$package $version is published already"
		continue
	fi
	case $version in
	*-*) tag=next ;; # a version to try; nobody gets it who does not ask for it
	*) tag=latest ;;
	esac
	npm publish "./$folder" --access public --tag "$tag"
done

// Command installers makes, from what goreleaser has built, the packages of npm and the formula of Homebrew. The
// release workflow runs it in the root of the repository:
//
//	go run ./deploy/installers dist dist/installers
//
// It writes nothing outside of the second folder, and publishes nothing: npm/publish.sh does.
//
//	npm/mcp-sse         the package that people name; it starts the program of one of the others
//	npm/linux-x64 …     the program for one system each: npm installs the one that fits
//	homebrew/sse-server.rb
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "installers: %v\n", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return errors.New("want the folder of a release and one to write to: installers dist dist/installers")
	}
	made, err := readRelease(args[0])
	if err != nil {
		return fmt.Errorf("read the release: %w", err)
	}
	if err := writeNPM(made, filepath.Join(args[1], "npm")); err != nil {
		return fmt.Errorf("npm: %w", err)
	}
	if err := writeFormula(made, filepath.Join(args[1], "homebrew")); err != nil {
		return fmt.Errorf("homebrew: %w", err)
	}
	return nil
}

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
	"github.com/mcp-sse/mcp-sse/internal/completions"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// completed is the script of bash that completes the words after it, and prints a line for each completion.
const completed = `
shift # to the words after sse-server, of which the last one is completed
COMP_WORDS=(sse-server "$@"); COMP_CWORD=$#
_mcp_sse sse-server "${@: -1}"
printf '%s\n' "${COMPREPLY[@]}"`

// The completion of bash knows the commands, the flags, and the values that flags and commands take. The
// packages run the completions of zsh and fish.
func TestCompletionOfBash(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	program := "#!/bin/sh\n" + childVariable + "=" + asProgram + " exec '" + clitest.Must(os.Executable()) + "' \"$@\"\n"
	ssetest.Must(t, os.WriteFile(filepath.Join(dir, "sse-server"), []byte(program), 0o700))
	for _, test := range []struct {
		words, all, some string // all the completions, or some of them
	}{
		{words: "co", all: "completion connect"},
		{words: "--log-le", all: "--log-level"},
		{words: "--log-level ", all: "debug error info warn"},
		{words: "--log-level w", all: "warn"},
		{words: "--log-level =", all: "debug error info warn"}, // bash takes --log-level=w for three words
		{words: "--log-level = w", all: "warn"},
		{words: "--sessions s", all: "shared"},
		{words: "--log-level warn co", all: "completion connect"},
		{words: "connect cur", all: "curl cursor"},
		{words: "connect ", some: "claude-code cursor"},
		{words: "connect --wr", all: "--write"},
		{words: "connect cursor ", all: ""},
		{words: "completion ", all: "bash fish zsh"},
		{words: "check --for clau", all: "claude-code claude-desktop"},
		{words: "check ", all: ""},
		{words: "-- connect ", all: ""},
	} {
		cmd := exec.Command("bash", append([]string{"-c", completions.Scripts["bash"] + completed, "bash", "sse-server"}, strings.Split(test.words, " ")...)...)
		cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		got := slices.Sorted(slices.Values(strings.Fields(string(out))))
		if err != nil || test.some == "" && strings.Join(got, " ") != test.all {
			t.Errorf("%q completes to %q, want %s (%v)", test.words, got, test.all, err)
		}
		for _, want := range strings.Fields(test.some) {
			if !slices.Contains(got, want) {
				t.Errorf("%q completes to %q without %s", test.words, got, want)
			}
		}
	}
}

package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
)

// output runs sse-server as a process of its own that ends by itself, and returns
// what it prints and its exit code.
func output(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Env = []string{programVariable + "=1", "PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatalf("run sse-server %q: %v", args, err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

func TestWordsDoWhatTheirFlagsDo(t *testing.T) {
	for _, tc := range []struct {
		word, flag string
		rest       []string
		want       string
	}{
		{"help", "--help", nil, "Usage: sse-server [flags] [-- command args...]\n"},
		{"version", "--version", nil, "sse-server "},
		{"check", "--check-config", nil, "# configuration ok\n"},
		{"check", "--check-config", []string{"--addr", "127.0.0.1:0", "--", "sh", "-c", "true"}, "# configuration ok\ncommand: [sh, \"-c\", true]\n"},
		{"check", "--check-config", []string{"--", "help"}, ""},
	} {
		word, wordErr, wordCode := output(t, append([]string{tc.word}, tc.rest...)...)
		flag, flagErr, flagCode := output(t, append([]string{tc.flag}, tc.rest...)...)
		if word != flag || wordErr != flagErr || wordCode != flagCode {
			t.Errorf("%s %q: exit code %d, prints\n%s%s\nwant what %s does: exit code %d\n%s%s",
				tc.word, tc.rest, wordCode, word, wordErr, tc.flag, flagCode, flag, flagErr)
		}
		if !strings.HasPrefix(word, tc.want) {
			t.Errorf("%s %q: prints %.200q, want %q first", tc.word, tc.rest, word, tc.want)
		}
	}
}

func TestWordAfterFlags(t *testing.T) {
	stdout, stderr, code := output(t, "--addr", "127.0.0.1:0", "check", "--gate-queue", "7")
	if code != 0 || !strings.Contains(stdout, "\ngate-queue: 7  # --gate-queue\n") {
		t.Errorf("exit code %d, prints\n%s%s\nwant the settings", code, stdout, stderr)
	}
}

// TestProgramNamedHelpIsGivenAfterDashes checks that a word after -- is a program.
func TestProgramNamedHelpIsGivenAfterDashes(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "help"), []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	stdout, stderr, code := output(t, "check", "--", "help")
	if code != 0 || !strings.HasPrefix(stdout, "# configuration ok\ncommand: [help]\n") {
		t.Errorf("exit code %d, prints\n%s%s\nwant the program help as the command", code, stdout, stderr)
	}
	_, stderr, code = output(t, "check", "me")
	if code != exitConfig || !strings.Contains(stderr, `unexpected argument "me"`) {
		t.Errorf("check me: exit code %d, prints %s", code, stderr)
	}
}

// TestMisspelledKeysAreSuggested checks the faults of files: the lines after the
// path.
func TestMisspelledKeysAreSuggested(t *testing.T) {
	for _, tc := range []struct{ name, content, want string }{
		{"a letter", "comand: [x]\n", `:1: unknown key "comand", did you mean "command"?`},
		{"two letters swapped", "commnad: [x]\n", `:1: unknown key "commnad", did you mean "command"?`},
		{"the end is missing", "auth-tokens: t\n", `:1: unknown key "auth-tokens", did you mean "auth-tokens-file"?`},
		{"the beginning is missing", "origins: [a]\n", `:1: unknown key "origins", did you mean "allowed-origins"?`},
		{"several ends", "tls: x\n", `:1: unknown key "tls", did you mean one of "tls-cert", "tls-key"?`},
		{"of another program", "port: 80\n", `:1: unknown key "port", did you mean "addr"?`},
		{"a flag", "--addr: x\n", `:1: unknown key "--addr", did you mean "addr"?`},
		{"a variable", "SSE_SERVER_GATE_QUEUE: 1\n", `:1: unknown key "SSE_SERVER_GATE_QUEUE", did you mean "gate-queue"?`},
		{"nothing near", "colour: red\n", `:1: unknown key "colour"` + "\n"},
		{"options under server", "server: {addr: x}\n", `:1: unknown key "server": options have no heading, put addr at the top level`},
		{"a long one", strings.Repeat("command-", 10) + ": red\n", `:1: unknown key "` + strings.Repeat("command-", 10) + "\"\n"},
		{"servers", "servrs: {a: {demo: true}}\n", `:1: unknown key "servrs", did you mean "servers"?`},
		{"in an entry", "servers:\n  a: {comand: [x], demo: true}\n", `:2: unknown key "servers.a.comand", did you mean "command"?`},
		{"in an entry, of all", "servers:\n  a: {auth-tokens: x, demo: true}\n",
			`:2: unknown key "servers.a.auth-tokens", did you mean "auth-tokens-file", at the top level?`},
		{"of an entry, at the top", "comand: [x]\nservers:\n  a: {demo: true}\n",
			`:1: unknown key "comand", did you mean "command", in an entry of servers?`},
		{"options under a heading", "limits:\n  max-connections: 5\n",
			`:1: unknown key "limits": options have no heading, put max-connections at the top level`},
		{"options under a heading of an entry", "servers:\n  a:\n    demo: true\n    limits: {gate-queue: 5, max-pending: 7}\n",
			`:4: unknown key "servers.a.limits": options have no heading, put gate-queue, max-pending directly into servers.a`},
		{"a server at the top", "docs:\n  command: [npx, server]\n", `:1: unknown key "docs": if it is a server, put it under servers`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := clitest.WriteFile(t, "gw.yaml", tc.content)
			_, stderr, code := output(t, "check", "--config", path)
			if want := "  " + path + tc.want; code != exitConfig || !strings.Contains(stderr, want) {
				t.Errorf("exit code %d, prints\n%swant %q", code, stderr, want)
			}
		})
	}
}

func TestMisspelledFlagsAreSuggested(t *testing.T) {
	for flag, want := range map[string]string{
		"--start-timout":    `unknown flag --start-timout, did you mean "--start-timeout"?`,
		"--auth-tokens":     `unknown flag --auth-tokens, did you mean "--auth-tokens-file"?`,
		"--max-connection":  `unknown flag --max-connection, did you mean "--max-connections"?`,
		"--max_connections": `unknown flag --max_connections, did you mean "--max-connections"?`,
		"--hosts":           `unknown flag --hosts, did you mean "--allowed-hosts"?`,
		"--tls":             `unknown flag --tls, did you mean one of "--tls-cert", "--tls-key"?`,
		"--no-anounce":      `unknown flag --no-anounce, did you mean "--no-announce"?`,
		"--comand":          `unknown flag --comand: the command to serve goes after --, as in: sse-server [flags] -- npx -y server`,
		"--args":            `unknown flag --args: the command to serve goes after --`,
		"--colour":          `unknown flag --colour` + "\n",
	} {
		_, stderr, code := output(t, flag, "x")
		if code != exitConfig || !strings.Contains(stderr, "  "+want) {
			t.Errorf("%s: exit code %d, prints\n%swant %q", flag, code, stderr, want)
		}
	}
}

// TestCommandInOneWord checks what is said of a command in quotes, which is taken
// for the name of a program.
func TestCommandInOneWord(t *testing.T) {
	_, stderr, code := output(t, "--", "npx -y foo")
	want := `  command: there is no program named "npx -y foo": give the program and its arguments as separate words, ` +
		"without quotes around them all, as in: sse-server -- npx -y foo\n"
	if code != exitConfig || !strings.Contains(stderr, want) {
		t.Errorf("exit code %d, prints\n%swant %q", code, stderr, want)
	}
	path := clitest.WriteFile(t, "gw.yaml", `command: ["npx -y", foo]`)
	_, stderr, code = output(t, "--config", path)
	want = `  command: there is no program named "npx -y": give the program and its arguments as separate entries, ` +
		`as in: command: [npx, "-y", foo]` + "\n"
	if code != exitConfig || !strings.Contains(stderr, want) {
		t.Errorf("exit code %d, prints\n%swant %q", code, stderr, want)
	}

	program := filepath.Join(t.TempDir(), "my server")
	if err := os.WriteFile(program, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	if stdout, stderr, code := output(t, "check", "--", program); code != 0 {
		t.Errorf("a program with a space in its name: exit code %d, prints\n%s%s", code, stdout, stderr)
	}
}

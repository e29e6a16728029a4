package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The shell block of README.md that searches runs as printed, with the programs built.
func TestREADMERunsAsPrinted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	page, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, block := range regexp.MustCompile("(?s)\n```sh\n(.*?)```\n").FindAllStringSubmatch(string(page), -1) {
		for line := range strings.Lines(block[1]) {
			if strings.HasPrefix(block[1], "# Pattern") || !strings.HasPrefix(line, "docsearch ") {
				continue
			}
			ran++
			cmd := exec.Command("sh", "-ec", line)
			cmd.Dir = "../.."
			cmd.Env = append(w.command().Env, "PATH="+filepath.Dir(binary(t, "docsearch"))+":"+os.Getenv("PATH"))
			if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "Architecture") {
				t.Errorf("%s: %v\n%s", line, err, out)
			}
		}
	}
	if ran == 0 {
		t.Error("README.md has no command that runs as printed")
	}
}

// The page names the flags, variables and files that the program has.
func TestREADMENamesWhatThereIs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	page, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	var help strings.Builder
	for _, args := range [][]string{{"--help"}, {"search", "--help"}, {"mcp", "--help"}, {"daemon", "--help"}, {"status", "--help"}, {"stop", "--help"}, {"model", "install", "--help"}} {
		out, err := w.command(args...).Output()
		if err != nil {
			t.Fatalf("docsearch %v: %v", args, err)
		}
		help.Write(out)
	}
	names := regexp.MustCompile(`--[a-z-]+[a-z]|DOCSEARCH_[A-Z_]+`).FindAllString(string(page), -1)
	for _, name := range names {
		if !strings.Contains(help.String(), name) {
			t.Errorf("README.md names %s, which no help has", name)
		}
	}
	if len(names) == 0 {
		t.Error("README.md names no flag")
	}
}

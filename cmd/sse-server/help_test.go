package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

func TestHelp(t *testing.T) {
	var out bytes.Buffer
	// Help is given whatever else is wrong.
	_, faults, err := load([]string{"--gate-queue", "x", "--help"}, environment(nil), &out)
	if err != nil || len(faults) > 0 {
		t.Fatalf("got faults %q, err %v", faults, err)
	}
	help := strings.Join(strings.Fields(out.String()), " ")
	if !strings.HasPrefix(help, "Usage: sse-server [flags] [-- command args...]") {
		t.Errorf("got %.80q, want the usage first", help)
	}
	for _, flag := range modelFlags(t) {
		if !strings.Contains(help, strings.Join(strings.Fields(helpText(flag.Value)), " ")) {
			t.Errorf("--%s is missing", flag.Name)
		}
	}
	for i, line := range strings.Split(out.String(), "\n") {
		if len(line) > 110 {
			t.Errorf("line %d is longer than 110 columns: %q", i+1, line)
		}
	}
}

// TestEveryFlagStatesItsUnit checks that the help of each number says what it
// counts and what 0 means, and that of each option its default and variable.
func TestEveryFlagStatesItsUnit(t *testing.T) {
	zero := regexp.MustCompile(`0( is refused|: [a-z ]+)\.$`)
	for _, flag := range modelFlags(t) {
		help := helpText(flag.Value)
		unit := ""
		switch flag.Target.Addr().Interface().(type) {
		case *duration:
			unit = "DURATION"
		case *size:
			unit = "BYTES"
		case *count:
			unit = "N"
		case *rate:
			unit = "PER-SECOND"
		}
		if unit != "" {
			if flag.PlaceHolder != unit {
				t.Errorf("--%s: got the unit %q, want %q", flag.Name, flag.PlaceHolder, unit)
			}
			if !zero.MatchString(flag.Help) {
				t.Errorf("--%s: got %q, want it to end with what 0 means", flag.Name, flag.Help)
			}
			if refused := strings.HasSuffix(flag.Help, "0 is refused."); refused == flag.Tag.Has("zero") {
				t.Errorf("--%s: the help and the tag zero disagree", flag.Name)
			}
		}
		if inEnv(flag) && !strings.HasSuffix(help, "["+defaultText(flag)+"] $"+envName(flag.Name)) {
			t.Errorf("--%s: got %q, want its default and variable at the end", flag.Name, help)
		}
		if !strings.HasSuffix(flag.Help, ".") || flag.Group == nil {
			t.Errorf("--%s: want a sentence and a group", flag.Name)
		}
	}
}

// TestReferenceIsComplete compares docs/reference/config.md with the flags, both
// ways: the tables between the marks are written from them. To write them anew:
// go test ./cmd/sse-server -run Reference -update
func TestReferenceIsComplete(t *testing.T) {
	const (
		path  = "../../docs/reference/config.md"
		begin = "<!-- options: written by go test ./cmd/sse-server -run Reference -update -->\n"
		end   = "<!-- /options -->\n"
	)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(data), begin)
	tables, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has lost its marks", path)
	}
	want := referenceTables(t)
	if *update {
		if err := os.WriteFile(path, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if tables != want {
		t.Errorf("%s is not what the flags say; run this test with -update", path)
	}
	known := map[string]bool{}
	for _, flag := range modelFlags(t) {
		known["--"+flag.Name], known["--no-"+flag.Name] = true, flag.Tag.Negatable != ""
		known[envName(flag.Name)] = inEnv(flag)
	}
	for _, name := range regexp.MustCompile(`--[a-z][a-z-]+|SSE_SERVER_[A-Z_]+[A-Z]`).FindAllString(before+after, -1) {
		if !known[name] {
			t.Errorf("%s names %s, which is not there", path, name)
		}
	}
}

// TestExamplesAreTaken checks that the files which the pages show are taken.
func TestExamplesAreTaken(t *testing.T) {
	env := map[string]string{"TOKEN": "x", "SEARCH_TOKEN": "x", "GITHUB_TOKEN": "x"}
	places := strings.NewReplacer(
		"/etc/sse-server/tokens", writeFile(t, "tokens", "alice:0123456789abcdef\n"),
		"/run/credentials/sse-server.service/tokens", writeFile(t, "tokens", "alice:0123456789abcdef\n"),
		"dir: /var/lib/sse-server", "dir: "+t.TempDir())
	for path, least := range map[string]int{
		"docs/reference/config.md": 2, "docs/getting-started.md": 1, "docs/operations.md": 1, "deploy/README.md": 1,
	} {
		data, err := os.ReadFile("../../" + path)
		if err != nil {
			t.Fatal(err)
		}
		examples := regexp.MustCompile("(?ms)^ *```yaml\n(.*?)^ *```").FindAllStringSubmatch(string(data), -1)
		if len(examples) < least {
			t.Errorf("%s has %d examples, want at least %d", path, len(examples), least)
		}
		for _, example := range examples {
			l := mustLoad(t, env, "--config", writeFile(t, "gw.yaml", places.Replace(example[1])))
			if len(l.origin) < 1 && len(l.servers) < 1 {
				t.Errorf("%s: the example sets nothing:\n%s", path, example[1])
			}
		}
	}
}

func referenceTables(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	for _, group := range groups() {
		fmt.Fprintf(&b, "\n## %s\n\n| flag | environment | file key | default | meaning |\n|---|---|---|---|---|\n", group.Title)
		for _, flag := range modelFlags(t) {
			if flag.Group.Key != group.Key {
				continue
			}
			env, key, value := "–", "–", strings.TrimPrefix(defaultText(flag), "default ")
			if inEnv(flag) {
				env = "`" + envName(flag.Name) + "`"
			}
			if inFile(flag) {
				key = "`" + flag.Name + "`"
			}
			if value != "none" {
				value = "`" + value + "`"
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", flagForm(flag), env, key, value,
				strings.ReplaceAll(flag.Help, "|", "\\|"))
		}
	}
	b.WriteString("\n")
	return b.String()
}

// flagForm is a flag as one types it.
func flagForm(flag *kong.Flag) string {
	short := ""
	if flag.Short != 0 {
		short = "-" + string(flag.Short) + ", "
	}
	switch {
	case flag.Tag.Negatable != "":
		return short + "--[no-]" + flag.Name
	case flag.IsBool():
		return short + "--" + flag.Name
	default:
		return short + "--" + flag.Name + " " + flag.PlaceHolder
	}
}

func modelFlags(t *testing.T) []*kong.Flag {
	t.Helper()
	parser, err := newParser(&config{}, &sources{lookupEnv: environment(nil)}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	return parser.Model.Flags
}

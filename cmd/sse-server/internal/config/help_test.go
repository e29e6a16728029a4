package config

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
)

func TestHelp(t *testing.T) {
	// Help is given whatever else is wrong.
	if c, _ := loadWith(t, nil, "--gate-queue", "x", "--help"); !c.Help {
		t.Error("--help after a fault is not seen")
	}
	help := strings.Join(strings.Fields(Help()), " ") + " "
	if !strings.HasPrefix(help, "Usage: sse-server [flags] [-- command args...]") {
		t.Errorf("got %.80q, want the usage first", help)
	}
	for _, o := range flags() {
		want := o.form() + " " + o.meaning()
		if o.inEnv() {
			want += " [default " + o.defaultText() + "] $" + envName(o.name) + " "
		}
		if !strings.Contains(help, want) {
			t.Errorf("%q is missing", want)
		}
	}
	for i, line := range strings.Split(Help(), "\n") {
		if len(line) > 110 {
			t.Errorf("line %d is longer than 110 columns: %q", i+1, line)
		}
	}
}

// TestEveryFlagStatesItsUnit checks that the help of each number says what it
// counts and what 0 means, and that each option has a sentence.
func TestEveryFlagStatesItsUnit(t *testing.T) {
	for _, o := range flags() {
		unit, number := "", true
		switch o.value.target.(type) {
		case *time.Duration:
			unit = "DURATION"
		case *int, *int64:
			unit = "N"
			if strings.HasSuffix(o.name, "-bytes") {
				unit = "BYTES"
			}
		case *float64:
			unit = "PER-SECOND"
		default:
			unit, number = o.value.unit, false
		}
		if o.value.unit != unit || number != regexp.MustCompile(`^0 (is refused|means [a-z ]+)\.$`).MatchString(o.value.zero) {
			t.Errorf("--%s: got the unit %q, want %q; 0: %q", o.name, o.value.unit, unit, o.value.zero)
		}
		if !strings.HasSuffix(o.help, ".") || o.group == "" {
			t.Errorf("--%s: want a sentence and a group", o.name)
		}
	}
}

// TestReferenceIsComplete compares docs/reference/config.md with the table of
// options, both ways: the tables between the marks are written from it. To write them:
// go test ./cmd/sse-server/internal/config -run Reference -update
func TestReferenceIsComplete(t *testing.T) {
	const (
		path  = "../../../../docs/reference/config.md"
		begin = "<!-- options: written by go test ./cmd/sse-server/internal/config -run Reference -update -->\n"
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
	want := referenceTables()
	if *update {
		if err := os.WriteFile(path, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if tables != want {
		t.Errorf("%s is not what the table of options says; run this test with -update", path)
	}
	known := map[string]bool{}
	for _, o := range flags() {
		known["--"+o.name], known["--no-"+o.name] = true, o.value.invertible
		known[envName(o.name)] = o.inEnv()
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
		"/etc/sse-server/tokens", clitest.WriteFile(t, "tokens", "alice:0123456789abcdef\n"),
		"/run/credentials/sse-server.service/tokens", clitest.WriteFile(t, "tokens", "alice:0123456789abcdef\n"),
		"dir: /var/lib/sse-server", "dir: "+t.TempDir())
	for path, least := range map[string]int{
		"docs/reference/config.md": 2, "docs/getting-started.md": 1, "docs/operations.md": 1, "deploy/README.md": 1,
	} {
		data, err := os.ReadFile("../../../../" + path)
		if err != nil {
			t.Fatal(err)
		}
		examples := regexp.MustCompile("(?ms)^ *```yaml\n(.*?)^ *```").FindAllStringSubmatch(string(data), -1)
		if len(examples) < least {
			t.Errorf("%s has %d examples, want at least %d", path, len(examples), least)
		}
		for _, example := range examples {
			l := mustLoad(t, env, "--config", clitest.WriteFile(t, "gw.yaml", places.Replace(example[1])))
			if len(l.origin) < 1 && len(l.Servers) < 1 {
				t.Errorf("%s: the example sets nothing:\n%s", path, example[1])
			}
		}
	}
}

func referenceTables() string {
	var b strings.Builder
	group := ""
	for _, o := range flags() {
		if o.group != group {
			group = o.group
			fmt.Fprintf(&b, "\n## %s\n\n| flag | environment | file key | default | meaning |\n|---|---|---|---|---|\n", group)
		}
		env, key, value := "–", "–", o.defaultText()
		if o.inEnv() {
			env = "`" + envName(o.name) + "`"
		}
		if o.inFile() {
			key = "`" + o.name + "`"
		}
		if value != "none" {
			value = "`" + value + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", o.form(), env, key, value,
			strings.ReplaceAll(o.meaning(), "|", "\\|"))
	}
	b.WriteString("\n")
	return b.String()
}

// flags returns the options that are flags: all but the command.
func flags() []option {
	return slices.DeleteFunc(newConfig(nil).rows, func(o option) bool { return !o.isFlag() })
}

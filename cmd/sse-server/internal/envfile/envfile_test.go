package envfile_test

import (
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/envfile"
)

const secret = "hunter2"

// Values of the env-file arrive as they are written.
func TestValuesOfAnEnvFile(t *testing.T) {
	for line, want := range map[string]string{
		"A=ab$CD9x":                     "ab$CD9x",
		"A=${HOME}":                     "${HOME}",
		`A="ab$CD\n\"x\" \w \\n"`:       "ab$CD\n\"x\" \\w \\n",
		`A='ab$CD\n' # a comment`:       `ab$CD\n`,
		"A = b c  # a comment":          "b c",
		"A=pass#word":                   "pass#word",
		"A=#word":                       "#word",
		"A= # nothing":                  "",
		"A=":                            "",
		"A=a=b==":                       "a=b==",
		"A=it's":                        "it's",
		"\texport A=1":                  "1",
		"\ufeffA=1\r\n":                 "1",
		"A=1\nA=2":                      "2",
		"A=\"-----BEGIN\nx\n\"\nB=1":    "-----BEGIN\nx\n",
		"# one\n\nexported=1\nA='x'\n#": "x",
	} {
		all, err := envfile.Parse(line)
		if got, ok := all["A"]; err != nil || !ok || got != want {
			t.Errorf("%q: got %q, %v, want %q", line, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"A=1\nB " + secret:                   "line 2: want NAME=VALUE",
		"A=\"1\n2\"\nexport " + secret:       "line 3: want NAME=VALUE",
		"A=1\n\nB=\"" + secret:               "line 3: the quote of the value does not end",
		"A='" + secret + "'" + secret + "\n": "line 1: want nothing after the value",
		"A=" + secret + "\x00":               "line 1: no variable may have a NUL",
	} {
		_, err := envfile.Parse(text)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), secret) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

package clientfile_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clientfile"
	"github.com/mcp-sse/mcp-sse/internal/clients"
)

// In the list of Continue's file an entry comes to the end, or changes in its place. All else stays byte for byte.
func TestWriteOfContinue(t *testing.T) {
	const item = "  - name: \"docs\"\n    type: streamable-http\n    url: \"" + url + "\"\n"
	c, _ := clients.Named("continue")
	if files := clientfile.Files(c.Entry, "/home/ada"); !slices.Equal(files, []string{filepath.Join("/home/ada", ".continue", "config.yaml")}) {
		t.Errorf("got the files %q", files)
	}
	if about := c.Entry.AboutTokenInFile([]clients.Server{{Name: "docs", URL: url, Token: true}}); !strings.Contains(about, "in the place of TOKEN") {
		t.Errorf("of the token: got %q", about)
	}
	for name, test := range map[string]struct {
		before, after string
		replaced      bool
		token         bool
	}{
		"nothing":          {"", "mcpServers:\n" + item, false, false},
		"comments alone":   {"# mine\n", "# mine\n\nmcpServers:\n" + item, false, false},
		"other keys":       {"name: My   Config # mine\n\n\nmodels:\n- name: 'é'\n  apiKey: ${{ secrets.KEY }}", "name: My   Config # mine\n\n\nmodels:\n- name: 'é'\n  apiKey: ${{ secrets.KEY }}\n\nmcpServers:\n" + item, false, false},
		"a key alone":      {"mcpServers: # mine\n# more\nx: 1\n", "mcpServers: # mine\n" + item + "# more\nx: 1\n", false, false},
		"an empty list":    {"mcpServers: [] # mine\nx: 1\n", "mcpServers: # mine\n" + item + "x: 1\n", false, false},
		"another entry":    {"mcpServers:\n  # a\n  - name: a\n    command: x\n    # - off\n\n# x\nx: {a: 1,   b: 2}\n", "mcpServers:\n  # a\n  - name: a\n    command: x\n    # - off\n" + item + "\n# x\nx: {a: 1,   b: 2}\n", false, false},
		"no indentation":   {"mcpServers:\n- uses: x/y\n# end\n", "mcpServers:\n- uses: x/y\n" + strings.ReplaceAll("\n"+item, "\n  ", "\n")[1:] + "# end\n", false, false},
		"much indentation": {"mcpServers:\n      -   name: a\n          args:\n          - |\n            # text\n\n", "mcpServers:\n      -   name: a\n          args:\n          - |\n            # text\n" + strings.ReplaceAll("\n"+item, "\n  ", "\n      ")[1:] + "\n", false, false},
		"line ends":        {"x: 1\r\nmcpServers:\r\n  - name: a\r\n", "x: 1\r\nmcpServers:\r\n  - name: a\r\n" + strings.ReplaceAll(item, "\n", "\r\n"), false, false},
		"a token":          {"mcpServers:\n", "mcpServers:\n" + item + "    requestOptions:\n      headers:\n        Authorization: \"Bearer TOKEN\"\n", false, true},
		"another URL": {"mcpServers:\n  # docs\n  -   name: 'docs' # mine\n      type: sse\n      url:   'http://old' # é\n      # end\n  - name: b\n",
			"mcpServers:\n  # docs\n  -   name: 'docs' # mine\n      type: streamable-http\n      url:   " + url + " # é\n      # end\n  - name: b\n", true, false},
		"no type":  {"mcpServers:\n  - url: " + url + "\n    name: docs\n", "mcpServers:\n  - url: " + url + "\n    name: docs\n    type: streamable-http\n", true, false},
		"one line": {"mcpServers:\n  - {type: sse, name: docs, url: http://old}\n", "mcpServers:\n  - {type: streamable-http, name: docs, url: " + url + "}\n", true, false},
		"the same": {"mcpServers: [{name: docs, type: streamable-http, url: '" + url + "'}]", "mcpServers: [{name: docs, type: streamable-http, url: '" + url + "'}]", false, false},
		"a token below": {"mcpServers:\n  - name: docs\n    type: streamable-http\n    url: " + url + "\n",
			"mcpServers:\n  - name: docs\n    requestOptions:\n      headers:\n        Authorization: Bearer TOKEN\n    type: streamable-http\n    url: " + url + "\n", true, true},
	} {
		file := filepath.Join(t.TempDir(), "file")
		write(t, file, test.before)
		for i := range 2 {
			written, err := clientfile.NewEditor(t.TempDir()).Write(c, file, []clients.Server{{Name: "docs", URL: url, Token: test.token}}, false)
			if got := read(t, file); err != nil || got != test.after || (len(written.Replaced) > 0) != (test.replaced && i == 0) {
				t.Errorf("%s: got %+v, %v\n%s\nwant\n%s", name, written, err, got, test.after)
			}
		}
	}
	for before, want := range map[string]string{
		"mcpServers:\n  - name: docs\n    url: x\n    requestOptions: {timeout: 5}\n": "it has a server docs with requestOptions: --replace takes it over",
		"mcpServers:\n  - name: docs\n    command: x\n":                               "it has a server docs with command",
		"mcpServers:\n  - name: docs\n  - name: docs\n":                               "it has docs twice",
		"mcpServers: [{name: a}]\n":                                                   "in a form that takes no other",
		"mcpServers: null\n":                                                          "in a form that takes no other",
		"{x: 1}\n":                                                                    "in a form that takes no other",
		"mcpServers: {a: 1}\n":                                                        "its mcpServers are not a list",
		"- mcpServers\n":                                                              "it is not valid YAML: ",
		"x: 1\n---\ny: 1\n":                                                           "want one YAML document",
		"x: 'hidden\n":                                                                "it is not valid YAML: line 1: ",
		"x: 1\nx: 2\n":                                                                "it is not valid YAML: line 2: ",
		"mcpServers: []\nmcpServers: []\n":                                            "it is not valid YAML: line 2: ",
	} {
		file := filepath.Join(t.TempDir(), "file")
		write(t, file, before)
		_, err := clientfile.NewEditor(t.TempDir()).Write(c, file, []clients.Server{{Name: "docs", URL: url}}, false)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hidden") || read(t, file) != before {
			t.Errorf("%q: got %v, want %q\n%s", before, err, want, read(t, file))
		}
	}
}

// Whatever a file has, it gets the entry or stays as it is.
func FuzzWriteOfContinue(f *testing.F) {
	for _, text := range []string{"", "\r ", "a: &a [x]\nmcpServers: *a\n", "mcpServers: &x\n- name: docs\n  url: |\n    a\n", "mcpServers:\n- ? a\n  : b\n...\n", "%YAML 1.2\n---\nmcpServers:\n  - !!map {name: docs, url: 'a\n   b'}\n", "\r\nmcpServers: []\r"} {
		f.Add(text)
	}
	c, _ := clients.Named("continue")
	file := filepath.Join(f.TempDir(), "file")
	f.Fuzz(func(t *testing.T, text string) {
		write(t, file, text)
		_, err := clientfile.NewEditor(t.TempDir()).Write(c, file, []clients.Server{{Name: "docs", URL: url}}, false)
		if got := read(t, file); err != nil && got != text || err == nil && !strings.Contains(got, url) {
			t.Errorf("%q: got %v\n%q", text, err, got)
		}
	})
}

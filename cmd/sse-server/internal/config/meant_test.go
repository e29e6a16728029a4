package config

import (
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/clients"
)

// People are told of the client whose name they begin, or write with a few letters wrong.
func TestNearest(t *testing.T) {
	for text, want := range map[string]string{
		"tray": "trae", "claude": "claude-code", "claud-code": "claude-code", "Coedx": "codex", "gemini": "gemini-cli", "vscode": "vs-code",
		"": "", "xy": "", "netscape": "",
	} {
		if got := nearest(text, clients.Names(clients.All)); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// The first words of other programs mean commands of ours.
func TestFirstWordsOfOtherPrograms(t *testing.T) {
	for word, want := range map[string]string{"list": "tools", "ls": "tools", "start": "serve", "run": "serve"} {
		if got := mustLoad(t, nil, word).Does; got != want {
			t.Errorf("%s: got %s, want %s", word, got, want)
		}
	}
}

// Each name that people type means one thing, in the form in which it is looked up.
func TestEachNameMeansOneThing(t *testing.T) {
	rows := map[string]int{}
	for _, one := range meanings {
		for _, name := range strings.Fields(one.typed) {
			if rows[name]++; rows[name] > 1 || name != plainName(name) {
				t.Errorf("%q is there %d times, and its plain form is %q", name, rows[name], plainName(name))
			}
		}
		if hasOption := one.option != "" || one.withURL != ""; hasOption == (one.place != "") {
			t.Errorf("%q: want an option or a place", one.typed)
		}
	}
}

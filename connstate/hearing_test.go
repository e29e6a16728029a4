package connstate_test

import (
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/connstate"
)

// A client hears different things of a request that is awaited, silenced or answered.
func TestWhatAClientHearsOfARequest(t *testing.T) {
	do := map[string]func(r *connstate.Request){
		"progress": func(r *connstate.Request) { r.SendProgress([]byte("progress"), false) },
		"silence":  func(r *connstate.Request) { r.Silence() },
		"answer":   func(r *connstate.Request) { r.Answer([]byte("answer"), "") },
	}
	for steps, want := range map[string]struct {
		hears string
		free  bool // another request may have the id
	}{
		"progress":                {"progress", false},
		"silence":                 {"", true},
		"answer":                  {"answer", true},
		"progress answer":         {"progress answer", true},
		"silence progress":        {"", true},
		"silence silence":         {"", true},
		"silence answer":          {"", true},
		"silence answer progress": {"", true},
		"answer progress":         {"answer", true},
		"answer silence":          {"answer", true},
		"answer answer":           {"answer", true},
	} {
		t.Run(steps, func(t *testing.T) {
			w := newWorld(t, connstate.Options{}, connstate.Client{Dialect: connstate.EventMessage, Quiet: true})
			w.attach(9)
			r := w.ask("1", "x")
			for _, step := range strings.Fields(steps) {
				do[step](r)
			}
			w.stream.writeAll()
			var heard []string
			for _, e := range w.stream.got() {
				heard = append(heard, e[strings.Index(e, ":")+1:])
			}
			equal(t, "heard", strings.Join(heard, " "), want.hears)
			_, err := w.c.BeginRequest(request(t, "1", "x"))
			equal(t, "the id is free", err == nil, want.free)
		})
	}
}

package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/exit"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// People who ask are told whether there is a newer release, and of nothing that the answer does not say for certain.
func TestNewerRelease(t *testing.T) {
	for what, test := range map[string]struct {
		version, answer string
		status          int
		code            int
		want            string
	}{
		"a newer one":          {"v1.9.0", `{"tag_name":"v1.10.0","html_url":"https://x/v1.10.0"}`, 200, exit.OK, "newer release v1.10.0: https://x/v1.10.0\n"},
		"the same":             {"v1.10.0", `{"tag_name":"v1.10.0"}`, 200, exit.OK, "there is no newer release\n"},
		"an older one":         {"v2.0.0", `{"tag_name":"v1.10.0"}`, 200, exit.OK, "there is no newer release\n"},
		"after its candidates": {"v1.0.0-rc.2", `{"tag_name":"v1.0.0"}`, 200, exit.OK, "newer release v1.0.0: \n"},
		"from the source":      {"(devel)", `{"tag_name":"v1.0.0","html_url":"https://x"}`, 200, exit.OK, "newest release v1.0.0, and this one was built from the source: https://x\n"},
		"none":                 {"v1.0.0", `{"message":"Not Found"}`, 404, exit.OK, "no release has been published yet\n"},
		"too many questions":   {"v1.0.0", `{}`, 403, exit.Failure, "whether there is a newer one is not known: 127.0.0.1:"},
		"another page":         {"v1.0.0", `<html>`, 200, exit.Failure, "whether there is a newer one is not known: the answer of "},
		"no version":           {"v1.0.0", "{\"tag_name\":\"\\u001b[2J\"}", 200, exit.Failure, `has no version: "\x1b[2J"`},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(test.status)
			_, _ = io.WriteString(w, test.answer)
		}))
		var out, log output
		code := (&Main{Stdout: &out, Stderr: &log}).tellNewer(test.version, server.URL)
		server.Close()
		ssetest.Want(t, what+": exit code", code, test.code)
		if got := out.String() + log.String(); !strings.Contains(got, test.want) || strings.Contains(got, "\x1b") {
			t.Errorf("%s: got %q, want %q", what, got, test.want)
		}
	}
}

// The command version asks nobody, unless it has --check.
func TestVersionAsksNobodyUnlessItIsTold(t *testing.T) {
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = io.WriteString(w, `{"tag_name":"v99.0.0","html_url":"https://x"}`)
	}))
	defer server.Close()
	for _, test := range []struct {
		args  string
		asked int32
	}{{"version", 0}, {"--version", 0}, {"version --check", 1}} {
		p := launchMain(t, &Main{
			Args: strings.Fields(test.args), LookupEnv: clitest.Environment(nil), releases: server.URL,
		})
		p.wantExit(exit.OK)
		ssetest.WantText(t, test.args, p.out.String(), "sse-server ", "\nrevision ")
		ssetest.Want(t, test.args+": questions", asked.Load(), test.asked)
		isNamed := strings.Contains(p.out.String(), "release v99.0.0")
		ssetest.Want(t, test.args+": the newest is named", isNamed, test.asked > 0)
	}
}

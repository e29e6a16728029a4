package config

import (
	"slices"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/gateway"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// Each flag with a list of values completes to them, and what people name in a first argument, too.
func TestValues(t *testing.T) {
	for word, want := range map[string]string{
		"--log-level": "debug info warn error", "--log-format": "text json", "--sessions": "per-connection shared",
		"--transports": "sse streamable", "--error-details": "auto full safe", "completion": "bash zsh fish",
		"--addr": "", "--watch": "", "check": "", "stdio": "", "no-such-word": "", "": "",
	} {
		ssetest.Want(t, "values of "+word, strings.Join(Values(word), " "), want)
	}
	for _, client := range []string{"claude-code", "cursor", "vs-code"} {
		for _, word := range []string{"connect", "--for"} {
			if !slices.Contains(Values(word), client) {
				t.Errorf("%s is no value of %s: %q", client, word, Values(word))
			}
		}
	}
	if !slices.Contains(Values("--for"), AllClients) || slices.Contains(Values("connect"), AllClients) {
		t.Errorf("all is a value of --for alone")
	}
	c := newConfig()
	for _, flag := range newParser(c, &c.Server).Model.Flags {
		if (len(Values("--"+flag.Name)) > 0) != flag.Tag.Has("oneof") {
			t.Errorf("--%s: got %q", flag.Name, Values("--"+flag.Name))
		}
	}
}

// Each value that the command line allows is a word of the gateway's option.
func TestValuesAreWordsOfTheGateway(t *testing.T) {
	for _, flag := range []string{"--sessions", "--transports", "--error-details"} {
		for _, word := range Values(flag) {
			c := mustLoad(t, nil, flag, word)
			o := c.Gateway(&c.Server, gateway.Options{})
			got := map[string]string{"--sessions": o.Sessions.String(), "--transports": o.Transports[0].String(),
				"--error-details": o.ErrorDetails.String()}[flag]
			ssetest.Want(t, flag, got, word)
		}
	}
}

package config

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
)

func TestTokens(t *testing.T) {
	path := clitest.WriteFile(t, "tokens", "# staff\n\n  alice:AAAAAAAAAAAAAAAAAAAA==\r\nbob : BBBBBBBBBBBBBBBBBBBB\nCCCCCCCCCCCCCCCCCCCC\nDDDDDDDDDDDDDDDDDDDD")
	l := mustLoad(t, nil, "--auth-tokens-file", path)
	principal := l.Tokens["CCCCCCCCCCCCCCCCCCCC"]
	want := map[string]string{
		"AAAAAAAAAAAAAAAAAAAA==": "alice", "BBBBBBBBBBBBBBBBBBBB": "bob",
		"CCCCCCCCCCCCCCCCCCCC": principal, "DDDDDDDDDDDDDDDDDDDD": l.Tokens["DDDDDDDDDDDDDDDDDDDD"],
	}
	if !maps.Equal(l.Tokens, want) {
		t.Errorf("got %v, want %v", l.Tokens, want)
	}
	sum := sha256.Sum256([]byte("CCCCCCCCCCCCCCCCCCCC")) // unsalted it would tell whether a guessed token is the one in a log
	if principal == "token-"+hex.EncodeToString(sum[:4]) {
		t.Errorf("the principal %s is the hash of the token", principal)
	}
	if !strings.HasPrefix(principal, "token-") || strings.Contains(principal, "C") || principal == want["DDDDDDDDDDDDDDDDDDDD"] {
		t.Errorf("principal of an unnamed token: got %q, want one of its own that does not show it", principal)
	}
	if len(l.Warnings) > 0 {
		t.Errorf("got warnings %q, want none", l.Warnings)
	}
}

func TestTokenFaults(t *testing.T) {
	for content, want := range map[string]string{
		"":            "holds no token",
		"# a\n\n#b\n": "holds no token",
		"good-token-0123456789\n" + secret + " x\n": "line 2: the token may hold letters",
		":0123456789abcdef\n":                       "line 1: the token has an empty principal",
		"alice:\n":                                  "line 1: the token may hold letters",
		"alice:a:b\n":                               "line 1: the token may hold letters",
		"alice:sha256:0123\n":                       "line 1: the token wants 64 hex digits after sha256:",
		"sha256:" + strings.Repeat("0", 64) + "\n":  "line 1: the token is a hash without a principal: write PRINCIPAL:sha256:HEX, where HEX is 64 hex digits",
		"sha256:abc\n":                              "line 1: the token is a hash without a principal: write PRINCIPAL:sha256:HEX, where HEX is 64 hex digits",
		"a:0123456789abcdef\nb:0123456789abcdef\n":  "line 2: the token is there twice",
	} {
		wantRefusal(t, nil, want, "--auth-tokens-file", clitest.WriteFile(t, "tokens", content))
	}
	wantRefusal(t, nil, "--auth-tokens-file: there is no file /does/not/exist", "--auth-tokens-file", "/does/not/exist")
}

// Two processes with one key of ids call an unnamed token the same: that is in the ids of its
// sessions. The name is of no use to whoever has another key.
func TestUnnamedTokenInAnotherProcess(t *testing.T) {
	tokens := clitest.WriteFile(t, "tokens", "CCCCCCCCCCCCCCCCCCCC\n")
	name := func(vars map[string]string, args ...string) string {
		processKey = rand.Text()
		return mustLoad(t, vars, append(args, "--auth-tokens-file", tokens)...).Tokens["CCCCCCCCCCCCCCCCCCCC"]
	}
	one, other := clitest.WriteFile(t, "one", strings.Repeat("x", 32)), clitest.WriteFile(t, "other", strings.Repeat("y", 32))
	first := name(nil, "--id-key-file", one)
	if again := name(nil, "--id-key-file", one); again != first {
		t.Errorf("with the same key: %s and %s", first, again)
	}
	if again := name(nil, "--id-key-file", other); again == first {
		t.Errorf("with another key: %s too", first)
	}
	home := map[string]string{"STATE_DIRECTORY": t.TempDir()}
	if first, again := name(home), name(home); first != again {
		t.Errorf("with the key by default: %s and %s", first, again)
	}
	if first, again := name(nil), name(nil); first == again {
		t.Errorf("without a key: %s twice", first)
	}
}

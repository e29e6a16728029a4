package config

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"os"
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
	if !strings.HasPrefix(principal, "token-") || strings.Contains(principal, "C") || principal == want["DDDDDDDDDDDDDDDDDDDD"] {
		t.Errorf("principal of an unnamed token: got %q, want one of its own that does not show it", principal)
	}
	if len(l.Warnings()) > 0 {
		t.Errorf("got warnings %q, want none", l.Warnings())
	}
}

func TestTokenFaults(t *testing.T) {
	const secret = "s3cret s3cret s3cret"
	for _, tc := range []struct{ name, content, want string }{
		{"empty", "", "holds no token"},
		{"comments only", "# a\n\n#b\n", "holds no token"},
		{"blank in a token", "good-token-0123456789\n" + secret + "\n", "line 2: the token may hold letters"},
		{"no principal", ":" + "0123456789abcdef\n", "line 1: the token has an empty principal"},
		{"no token", "alice:\n", "line 1: the token may hold letters"},
		{"colon in a token", "alice:a:b\n", "line 1: the token may hold letters"},
		{"twice", "a:0123456789abcdef\nb:0123456789abcdef\n", "line 2: the token is there twice"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, faults := loadWith(t, nil, "--auth-tokens-file", clitest.WriteFile(t, "tokens", tc.content))
			if len(faults) != 1 || !strings.Contains(faults[0], tc.want) || strings.Contains(faults[0], "s3cret") {
				t.Errorf("got %q, want one with %q and no token", faults, tc.want)
			}
		})
	}
	_, faults := loadWith(t, nil, "--auth-tokens-file", "/does/not/exist")
	if len(faults) != 1 || !strings.HasPrefix(faults[0], `--auth-tokens-file "/does/not/exist": open`) {
		t.Errorf("got %q, want one that names the file", faults)
	}
}

func TestTokenWarnings(t *testing.T) {
	path := clitest.WriteFile(t, "tokens", "short\n")
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	l := mustLoad(t, nil, "--auth-tokens-file", path)
	if len(l.Warnings()) != 2 || !strings.Contains(l.Warnings()[0], "read by every user") || !strings.Contains(l.Warnings()[1], "line 1") {
		t.Errorf("got %q, want a warning of the mode and one of the length", l.Warnings())
	}
	if strings.Contains(strings.Join(l.Warnings(), ""), "short\n") {
		t.Errorf("got %q, want no token in it", l.Warnings())
	}
}

func TestFilesThatOthersCanChange(t *testing.T) {
	tokens, bearer := clitest.WriteFile(t, "tokens", "CCCCCCCCCCCCCCCCCCCC\n"), clitest.WriteFile(t, "bearer", "DDDDDDDDDDDDDDDDDDDD\n")
	for _, path := range []string{tokens, bearer} {
		if err := os.Chmod(path, 0o620); err != nil {
			t.Fatal(err)
		}
	}
	l := mustLoad(t, nil, "--auth-tokens-file", tokens, "--url", "http://127.0.0.1:1/mcp", "--bearer-token-file", bearer)
	if len(l.Warnings()) != 2 || !strings.Contains(l.Warnings()[0], tokens+" can be changed") || !strings.Contains(l.Warnings()[1], bearer+" can be changed") {
		t.Errorf("got %q, want a warning for each file", l.Warnings())
	}
}

// An unsalted hash would tell whether a guessed token is the one in a log.
func TestNamesOfTokensAreKeyed(t *testing.T) {
	sum := sha256.Sum256([]byte("CCCCCCCCCCCCCCCCCCCC"))
	principal, _, err := splitToken("CCCCCCCCCCCCCCCCCCCC")
	again, _, _ := splitToken("CCCCCCCCCCCCCCCCCCCC")
	if err != nil || principal != again || principal == "token-"+hex.EncodeToString(sum[:4]) {
		t.Errorf("got %q, then %q, %v; want one name that is not the hash of the token", principal, again, err)
	}
}

func TestProxiesThatAreEverybody(t *testing.T) {
	for _, network := range []string{"0.0.0.0/0", "::/0"} {
		l := mustLoad(t, nil, "--trusted-proxies", network)
		if len(l.Warnings()) != 1 || !strings.Contains(l.Warnings()[0], "--trusted-proxies "+network) {
			t.Errorf("got %q, want a warning of %s", l.Warnings(), network)
		}
	}
}

package load_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/tools/internal/load"
)

func TestSecretsAreFound(t *testing.T) {
	a, b := load.NewSecret(), load.NewSecret()
	if a == b {
		t.Fatalf("two secrets are the same: %s", a)
	}
	for name, c := range map[string]struct {
		in   string
		want []string
	}{
		"Alone":       {a, []string{a}},
		"Two":         {"x" + a + "," + b + "x", []string{a, b}},
		"NextToOne":   {a + b, []string{a, b}},
		"CutOff":      {a + b[:len(b)-1], []string{a}},
		"None":        {"leaktest-", nil},
		"Another":     {"leaktest-abcdefghijklmnopqrstuvwxyz", nil},
		"BehindAHalf": {"leaktest-" + a, []string{a}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := load.Secrets([]byte(c.in)); !slices.Equal(got, c.want) {
				t.Errorf("secrets in %s = %q, want %q", c.in, got, c.want)
			}
		})
	}
}

func TestJSONDoesNotChangeASecret(t *testing.T) {
	secret := load.NewSecret()
	if got, err := json.Marshal(secret); err != nil || string(got) != `"`+secret+`"` {
		t.Errorf("JSON of %s = %s, %v", secret, got, err)
	}
}

func FuzzSecrets(f *testing.F) {
	f.Add([]byte("leaktest-ABCDEFGHIJKLMNOPQRSTUVWXYZleaktest-leaktest-234567ABCDEFGHIJKLMNOPQRST"))
	f.Fuzz(func(t *testing.T, text []byte) {
		secret := load.NewSecret()
		for _, found := range load.Secrets(text) {
			if len(found) != len(secret) || !strings.Contains(string(text), found) {
				t.Errorf("secret %q in %q", found, text)
			}
		}
		if got := load.Secrets(append(text, secret...)); !slices.Contains(got, secret) {
			t.Errorf("the secret behind %q was not found", text)
		}
	})
}

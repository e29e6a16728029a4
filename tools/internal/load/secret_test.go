package load_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/mcp-sse/mcp-sse/tools/internal/load"
)

func TestSecretsAreFound(t *testing.T) {
	a, b := load.NewSecret(), load.NewSecret()
	if encoded, err := json.Marshal(a); a == b || err != nil || string(encoded) != `"`+a+`"` {
		t.Fatalf("the secrets are %s and %s, in JSON %s", a, b, encoded)
	}
	for in, want := range map[string][]string{
		"x" + a + "," + b + "x":               {a, b},
		a + b[:len(b)-1]:                      {a},
		"leaktest-" + a + b:                   {a, b},
		"leaktest-abcdefghijklmnopqrstuvwxyz": nil,
	} {
		if got := load.Secrets([]byte(in)); !slices.Equal(got, want) {
			t.Errorf("secrets in %s = %q, want %q", in, got, want)
		}
	}
}

package e2e

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestIDsComeBackUnchanged(t *testing.T) {
	t.Parallel()
	ids := []string{
		`9007199254740993`, `1.5`, `1e3`, `-0`, `0`, `1.50`, `"x"`, `""`, `"1"`, `"\u0041"`, `"é"`,
		`123456789012345678901234567890`, `"` + strings.Repeat("i", 200) + `"`,
	}
	for name, args := range map[string][]string{"Demo": nil, "Child": fake(t), "Everything": everything(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := openStream(t, startGateway(t, args...).url)
			for _, id := range ids {
				if got := s.call(id, "echo", `{"message":"m"}`); got != "m" && got != "Echo: m" {
					t.Errorf("id %s: echo = %q", id, got)
				}
			}
		})
	}
}

func TestParamsReachTheServerByteForByte(t *testing.T) {
	t.Parallel()
	s := openStream(t, startGateway(t, fake(t)...).url)
	params := `{"name":"wire","arguments":{"big":9007199254740993,"f":1.50,"e":1E3,"esc":"\u00e9\/","z":1,"a":2},"x-unknown":[null,true]}`
	got := s.request(`"mine"`, "tools/call", params).text(t)
	if !strings.Contains(got, `"params":`+params) {
		t.Errorf("the server got %s, want params %s", got, params)
	}
	var sent struct{ ID json.Number }
	if err := json.Unmarshal([]byte(got), &sent); err != nil {
		t.Fatalf("the server got %s: %v", got, err)
	}
	if n, err := sent.ID.Int64(); err != nil || n < 1 {
		t.Errorf("id on the server's side = %s, want a positive integer of the gateway's own", sent.ID)
	}
}

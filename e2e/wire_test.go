package e2e

import (
	"encoding/json"
	"strings"
	"testing"
)

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

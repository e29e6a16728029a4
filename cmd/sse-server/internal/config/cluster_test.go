package config

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/clitest"
)

func TestOptionsOfACluster(t *testing.T) {
	key := clitest.WriteFile(t, "id-key", strings.Repeat("k", 32))
	const at = "tls://ada:" + secret + "@nats.example:4222"
	c := mustLoad(t, nil, "--nats", at+",nats://other", "--id-key-file", key)
	if c.ClusterName != "mcp" || c.Replica != "" || string(c.IDKey) != strings.Repeat("k", 32) {
		t.Errorf("got %q, %q and the key %q", c.ClusterName, c.Replica, c.IDKey)
	}
	missing := filepath.Join(t.TempDir(), "none")
	for want, args := range map[string][]string{
		"--cluster: has no effect without --nats":    {"--cluster", "x"},
		"--replica: has no effect without --nats":    {"--replica", "x"},
		"--cluster-addr: has no effect without":      {"--cluster-addr", ":7946"},
		"--cluster-addr: want HOST:PORT":             {"--nats", at, "--id-key-file", key, "--cluster-addr", "host"},
		"--nats-creds: has no effect without --nats": {"--nats-creds", key},
		"--nats: replicas recognize each other's":    {"--nats", at},
		"--nats-creds: there is no file":             {"--nats", at, "--id-key-file", key, "--nats-creds", missing},
		"the same on all replicas; make it once":     {"--nats", at, "--id-key-file", missing},
		`--cluster: "a.b": want at most 48 letters`:  {"--nats", at, "--id-key-file", key, "--cluster", "a.b"},
		`--replica: "a b": want at most 48 letters`:  {"--nats", at, "--id-key-file", key, "--replica", "a b"},
		"--nats: want URLs such as":                  {"--nats", "http://" + secret, "--id-key-file", key},
		"--nats: want URLs such":                     {"--nats", at + ",", "--id-key-file", key},
		"--nats: want URLs":                          {"--nats", "nats://ada:%" + secret + "@h", "--id-key-file", key},
	} {
		wantRefusal(t, nil, want, args...)
		wantRefusal(t, nil, want, append([]string{"check"}, args...)...)
	}
	child := mustLoad(t, nil, "--nats", at, "--id-key-file", key, "--", "x")
	if child.passes("SSE_SERVER_NATS", "") {
		t.Error("a child gets the password of NATS")
	}
	if other := mustLoad(t, nil, "--nats", "nats://other", "--id-key-file", key, "--", "x"); other.Hash() != child.Hash() {
		t.Error("the hash has the password of NATS")
	} else if err := child.CheckChange(other); err == nil || strings.Contains(err.Error(), secret) || !slices.Contains(strings.Fields(err.Error()), "--nats:") {
		t.Errorf("another NATS: %v", err)
	}
}

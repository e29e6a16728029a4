package ssetest

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// StateDir returns the state directory of the gateways of a test, below that of the test binary: no test
// shall be answered from what another one's server has said.
func StateDir(t *testing.T) string {
	own := filepath.Join(os.Getenv("XDG_STATE_HOME"), strconv.FormatInt(stateCount.Add(1), 10))
	dir, known := stateDirs.LoadOrStore(t.Name(), own)
	if !known {
		t.Cleanup(func() { stateDirs.Delete(t.Name()) }) // with -count the test has another one next time
	}
	return dir.(string)
}

var (
	stateDirs  sync.Map // by the names of tests
	stateCount atomic.Int64
)

// WithState returns the environment of a gateway of a test. It starts servers for clients alone: hundreds of
// looks at servers that no test asks for would keep the machine busy.
func WithState(t *testing.T) []string {
	return append(os.Environ(), "XDG_STATE_HOME="+StateDir(t), "XDG_RUNTIME_DIR=", "SSE_SERVER_START_CHECK=false")
}

// Remembered reports whether a gateway of a test has kept what its server said.
func Remembered(t *testing.T) bool {
	files, _ := filepath.Glob(filepath.Join(StateDir(t), "sse-server", "remembered", "*.json"))
	return len(files) > 0
}

// RememberedInAnyFolder reports whether a gateway of a test has kept what its server says in an empty folder.
func RememberedInAnyFolder(t *testing.T) bool {
	return HasAnyFolder(filepath.Join(StateDir(t), "sse-server", "remembered"))
}

// RememberedFor reports whether a gateway of a test has kept what its server said to "gateway", which is the gateway
// itself, or to "anybody", who is a client without a principal.
func RememberedFor(t *testing.T, who string) bool {
	return has(filepath.Join(StateDir(t), "sse-server", "remembered"), `"who":"`+who+`"`)
}

// RememberedServers returns of how many servers the gateways of a test have kept what they said.
func RememberedServers(t *testing.T) int {
	files, _ := filepath.Glob(filepath.Join(StateDir(t), "sse-server", "remembered", "*.json"))
	return len(files)
}

// HasAnyFolder reports whether the files of a memory have what a server says in an empty folder.
func HasAnyFolder(dir string) bool { return has(dir, `"place":"any-folder-`) }

func has(dir, text string) bool {
	files, _ := filepath.Glob(filepath.Join(dir, "*.json"))
	for _, file := range files {
		if data, err := os.ReadFile(file); err == nil && strings.Contains(string(data), text) {
			return true
		}
	}
	return false
}

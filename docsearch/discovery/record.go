package discovery

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/mcp-sse/mcp-sse/docsearch/api"
)

// maxRecord is the largest size of a record's file that Read reads.
const maxRecord = 64 << 10

// Record says where a daemon listens and which process it is.
type Record struct {
	Address      string    `json:"address"` // host:port
	PID          int       `json:"pid"`
	StartedAt    time.Time `json:"startedAt"`
	ProcessStart string    `json:"processStart"` // see ProcessStart; empty if unknown
	Version      string    `json:"version"`
	APIVersion   int       `json:"apiVersion"`
}

// NewRecord returns the record of this process, which listens at address.
func NewRecord(address, version string) Record {
	pid := os.Getpid()
	start, err := ProcessStart(pid)
	if err != nil {
		start = ""
	}
	return Record{Address: address, PID: pid, StartedAt: time.Now().UTC().Truncate(time.Millisecond),
		ProcessStart: start, Version: version, APIVersion: api.Version}
}

// Same reports whether r and other describe the same run of a daemon.
func (r Record) Same(other Record) bool {
	return r.Address == other.Address && r.PID == other.PID &&
		r.ProcessStart == other.ProcessStart && r.StartedAt.Equal(other.StartedAt)
}

// Alive reports whether the process of the record still runs. A process that got the
// same PID later is another one. It reports false if it cannot tell.
func (r Record) Alive() bool {
	if r.PID <= 0 || r.ProcessStart == "" {
		return false
	}
	start, err := ProcessStart(r.PID)
	return err == nil && start == r.ProcessStart
}

// Read returns the record in the state directory. It returns an error that wraps
// ErrNoRecord if there is none, and ErrOwner if the directory belongs to another user.
// The record may be stale: see Held.
func Read(dir string) (Record, error) {
	if _, err := statOwned(dir); err != nil {
		return Record{}, noRecord(err)
	}
	data, err := readFile(filepath.Join(dir, recordFile))
	if err != nil {
		return Record{}, noRecord(err)
	}
	return parseRecord(data)
}

func noRecord(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return ErrNoRecord
	}
	return fmt.Errorf("read record: %w", err)
}

func readFile(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|NoFollow, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	return io.ReadAll(io.LimitReader(f, maxRecord))
}

// parseRecord reads a record and checks that a client can use it.
func parseRecord(data []byte) (Record, error) {
	var r Record
	if err := json.Unmarshal(data, &r); err != nil {
		return Record{}, fmt.Errorf("read record: %w", err)
	}
	host, _, err := net.SplitHostPort(r.Address)
	if err != nil {
		return Record{}, fmt.Errorf("read record: address: %w", err)
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return Record{}, fmt.Errorf("read record: address %q is not on the loopback interface", r.Address)
	}
	if r.PID <= 0 {
		return Record{}, fmt.Errorf("read record: process id %d is not positive", r.PID)
	}
	return r, nil
}

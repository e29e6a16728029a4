package background

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// A program does not wait for the process that stands by while the disk hangs.
func TestStartOfALearnerOnADiskThatHangs(t *testing.T) {
	dir := ssetest.HangingDisk(t)
	done := make(chan error)
	go func() { // ends with the disk
		_, err := startLearner(nil, json.RawMessage(`{}`), dir)
		done <- err
	}()
	select {
	case err := <-done:
		ssetest.WantText(t, "the error", fmt.Sprint(err), "does not answer")
	case <-time.After(10 * time.Second):
		t.Error("it waits for the disk")
	}
}

package main

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// The log of a shared server is emptied when it has grown too large, and only then.
func TestLogOfASharedServerIsBounded(t *testing.T) {
	file, err := os.OpenFile(filepath.Join(t.TempDir(), "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	ssetest.Must(t, err)
	defer file.Close()
	log := slog.New(slog.NewTextHandler(file, nil))
	for _, tt := range []struct{ size, least, most int64 }{{maxDaemonLog, maxDaemonLog, maxDaemonLog}, {maxDaemonLog + 1, 1, 1000}} {
		ssetest.Must(t, file.Truncate(tt.size))
		boundLog(file, log)
		info, err := file.Stat()
		ssetest.Must(t, err)
		if info.Size() < tt.least || info.Size() > tt.most {
			t.Errorf("of %d bytes %d are left", tt.size, info.Size())
		}
	}
}

// A server ends when nobody has been connected for a while, and not before.
func TestAwaitUnused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		awaitUnused(t.Context(), 10*time.Minute, func() int {
			if time.Since(began) < time.Hour {
				return 1
			}
			return 0
		})
		if took := time.Since(began); took < time.Hour+9*time.Minute || took > time.Hour+11*time.Minute {
			t.Errorf("it ended after %v, want about an hour and ten minutes", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began = time.Now()
		awaitUnused(ctx, time.Hour, func() int { return 0 })
		if took := time.Since(began); took > 2*time.Minute {
			t.Errorf("it ended %v after its context", took)
		}
	})
}

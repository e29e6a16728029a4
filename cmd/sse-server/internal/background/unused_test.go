package background

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
		BoundLog(file, log)
		info, err := file.Stat()
		ssetest.Must(t, err)
		if info.Size() < tt.least || info.Size() > tt.most {
			t.Errorf("of %d bytes %d are left", tt.size, info.Size())
		}
	}
}

// A server ends when nobody has been connected for a while, or can be, and not before.
func TestAwaitUnused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, always := time.Now(), func() bool { return true }
		why := AwaitUnused(t.Context(), 10*time.Minute, always, func() int {
			if time.Since(began) < time.Hour {
				return 1
			}
			return 0
		})
		if took := time.Since(began); took < time.Hour+9*time.Minute || took > time.Hour+11*time.Minute {
			t.Errorf("it ended after %v, want about an hour and ten minutes", took)
		}
		ssetest.Want(t, "why", why, "no client has been connected")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began = time.Now()
		AwaitUnused(ctx, time.Hour, always, func() int { return 0 })
		if took := time.Since(began); took > 2*time.Minute {
			t.Errorf("it ended %v after its context", took)
		}
		began = time.Now()
		why = AwaitUnused(t.Context(), time.Hour, func() bool { return time.Since(began) < time.Minute }, func() int { return 1 })
		ssetest.Want(t, "why", why, "its socket has been deleted or replaced")
	})
}

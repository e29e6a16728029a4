package background

import (
	"context"
	"io"
	"log/slog"
	"os"
	"time"
)

// AwaitUnused waits until nobody has been connected for a while, or nobody can connect any more, and returns which.
// connections returns how many clients are.
func AwaitUnused(ctx context.Context, limit time.Duration, isReachable func() bool,
	connections func() int) (why string) {
	tick := time.NewTicker(min(limit, time.Minute) / 4)
	defer tick.Stop()
	for last := time.Now(); time.Since(last) < limit; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ""
		}
		if connections() > 0 {
			last = time.Now()
		}
		if !isReachable() {
			return "its socket has been deleted or replaced"
		}
	}
	return "no client has been connected"
}

// maxDaemonLog bounds the log of a shared sse-server, in bytes.
const maxDaemonLog = 8 << 20

// BoundLog empties the log file of a shared sse-server that has grown too large.
func BoundLog(to io.Writer, log *slog.Logger) {
	file, ok := to.(*os.File)
	if !ok {
		return
	}
	info, err := file.Stat()
	if err == nil && info.Mode().IsRegular() && info.Size() > maxDaemonLog && file.Truncate(0) == nil {
		log.Info("log file emptied: it had grown too large", "bytes", info.Size())
	}
}

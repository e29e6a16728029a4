package statuspage

import (
	"net/http"
	"strconv"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/httpanswer"
)

const (
	maxWatchers = 64               // browsers that follow the page
	updateEvery = 2 * time.Second  // least time between two updates
	watchTime   = 30 * time.Minute // after which a browser must ask again
)

// events tells a browser when the page has changed, until it goes, stalls, or the servers
// have been shut down.
func (p *page) events(w http.ResponseWriter, r *http.Request) {
	defer p.watchers.Add(-1)
	if p.watchers.Add(1) > maxWatchers {
		http.Error(w, "too many browsers follow this page: reload it by hand", http.StatusServiceUnavailable)
		return
	}
	stream := httpanswer.New(w, r, httpanswer.FormEvents, 0)
	defer stream.End()
	stream.Begin()
	stream.Retry(updateEvery)
	stream.Comment("this stream says when the page has changed")
	seen := r.URL.Query().Get("seen")
	tick, over := time.NewTicker(updateEvery), time.After(watchTime)
	defer tick.Stop()
	for stream.Flush() == nil {
		select {
		case <-tick.C:
		case <-over:
			return
		case <-r.Context().Done():
			return
		}
		l := p.look()
		if !l.open {
			return
		}
		// Once a minute at least: a browser that is gone shows at a write.
		if sum := strconv.FormatUint(l.Sum, 10); sum != seen {
			seen = sum
			stream.Message("", []byte("changed"))
		}
	}
}

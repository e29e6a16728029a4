package statuspage

import (
	"net/http"
	"strconv"
	"time"

	"github.com/mcp-sse/mcp-sse/internal/eventstream"
)

const (
	// maxWatchers bounds the browsers that follow the page.
	maxWatchers = 64
	// updateEvery is the least time between two updates of a browser.
	updateEvery = 2 * time.Second
	// silence is the longest time without a byte: a browser that is gone shows at a write.
	silence = 16 * time.Second
	// watchTime is how long a browser is served before it must ask again.
	watchTime = 30 * time.Minute
	// writeTimeout is how long a browser may stall.
	writeTimeout = 10 * time.Second
)

// events tells a browser when the page has changed, until it goes, stalls, or the servers
// have been shut down.
func (p *Page) events(w http.ResponseWriter, r *http.Request) {
	defer p.watchers.Add(-1)
	if p.watchers.Add(1) > maxWatchers {
		http.Error(w, "too many browsers follow this page: reload it by hand", http.StatusServiceUnavailable)
		return
	}
	stream := eventstream.NewWriter(w, r, writeTimeout)
	defer func() { _ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) }() // the TCP connection may serve other requests
	stream.Begin()
	stream.Retry(updateEvery)
	stream.Comment("this stream says when the page has changed")
	seen, _ := strconv.ParseUint(r.URL.Query().Get("seen"), 36, 64) // what the browser shows
	tick, over := time.NewTicker(updateEvery), time.After(watchTime)
	defer tick.Stop()
	for quiet := time.Duration(0); ; quiet += updateEvery {
		if stream.Buffered() > 0 {
			if stream.Flush() != nil {
				return
			}
			quiet = 0
		}
		select {
		case <-tick.C:
		case <-over:
			return
		case <-r.Context().Done():
			return
		}
		l := p.look()
		switch {
		case !l.open:
			return
		case l.sum != seen:
			seen = l.sum
			stream.Message("", []byte("changed"))
		case quiet >= silence:
			stream.Comment("")
		}
	}
}

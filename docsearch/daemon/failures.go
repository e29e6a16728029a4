package daemon

import (
	"fmt"
	"net/http"
	"sync"
	"time"
)

// failures counts the searches that failed, so that the status tells of them.
type failures struct {
	mu   sync.Mutex
	n    int
	last string
	at   time.Time
	now  bool // the last search has failed
}

// note counts a search that ended with err, unless its request was wrong.
func (f *failures) note(err error) {
	if err != nil {
		if status, _ := classify(err); status < http.StatusInternalServerError {
			return
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now = err != nil
	if !f.now {
		return
	}
	f.n++
	f.last, f.at = err.Error(), time.Now()
}

// warning returns what the status says, "" if no search has failed, and whether the last
// one has.
func (f *failures) warning() (string, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.n == 0 {
		return "", false
	}
	return fmt.Sprintf("failed searches since the daemon started: %d, the last at %s: %s", f.n,
		f.at.UTC().Format(time.RFC3339), f.last), f.now
}

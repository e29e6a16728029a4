package compose

import (
	"github.com/mcp-sse/mcp-sse/internal/merge"
	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// Tables returns the size of what a session holds of requests, for tests that look for leaks.
func Tables(conn jsonrpc.Conn) map[string]int {
	s := conn.(*session)
	s.mu.Lock()
	defer s.mu.Unlock()
	return map[string]int{
		"own": len(s.own), "open": len(s.open), "asked": len(s.asked), "waiting": len(s.waiting), "due": len(s.due),
	}
}

// Sessions returns how many sessions a view has, and how many members are in trouble.
func Sessions(v *View) (sessions, troubles int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.known.mu.Lock()
	defer v.known.mu.Unlock()
	return len(v.sessions), len(v.known.troubles)
}

// WatchMerges has f called at each merge of lists, and tells whether the lock of a session is held meanwhile.
func WatchMerges(v *View, f func(isLocked bool)) {
	v.cache.merge = func(in merge.Input) *merge.Result {
		isLocked := false
		v.mu.Lock()
		for s := range v.sessions {
			if s.mu.TryLock() {
				s.mu.Unlock()
			} else {
				isLocked = true
			}
		}
		v.mu.Unlock()
		f(isLocked)
		return merge.Build(in)
	}
}

package compose

import "github.com/mcp-sse/mcp-sse/jsonrpc"

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

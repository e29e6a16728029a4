package mcpserver

import "time"

// SetPauses sets how long a search waits for the first index, and how often it looks.
func SetPauses(s *Server, wait, poll time.Duration) {
	s.indexWait, s.indexPoll = wait, poll
}

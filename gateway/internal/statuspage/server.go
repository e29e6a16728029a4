package statuspage

import (
	"cmp"
	"slices"
	"time"

	"github.com/mcp-sse/mcp-sse/connstate"
)

// conditions are those of servers, those that need attention first.
var conditions = []string{
	"failing", WaitingForLogin, "unstable", "starting", "draining", "healthy", Cached, "standing by", "not started",
}

// Cached is the condition of a server whose clients are answered from memory until one calls it.
const Cached = "cached"

// WaitingForLogin is the condition of a remote server that wants a person to log in.
const WaitingForLogin = "waiting for a login"

// recently is how long a failure makes a server unstable.
const recently = 5 * time.Minute

// server is a Server with what follows from it.
type server struct {
	*Server
	Label     string // its name on a page and in its path
	Condition string
	States    [connstate.Closed]int // open connections by state
	Connected int
	InFlight  int // requests
}

func newServer(of *Server, now time.Time) *server {
	s := &server{Server: of, Label: cmp.Or(of.Name, "server"), Condition: of.Condition(now)}
	for i := range of.Connections {
		s.count(&of.Connections[i])
	}
	return s
}

// Condition returns the word for how the server is.
func (s *Server) Condition(now time.Time) string {
	switch {
	case s.Draining:
		return "draining"
	case s.NeedsLogin:
		return WaitingForLogin
	case s.Failing:
		return "failing"
	case now.Sub(s.Failed) < recently:
		return "unstable"
	case s.Known && s.Sessions == 0:
		return Cached
	case !s.Started.IsZero():
		return "healthy"
	case s.Sessions > s.Idle:
		return "starting"
	case s.Idle > 0: // and nobody has needed it yet
		return "standing by"
	default:
		return "not started"
	}
}

// count adds a connection.
func (s *server) count(c *connstate.Snapshot) {
	s.Connected++
	if state := int(c.State); state < len(s.States) {
		s.States[state]++
	}
	s.InFlight += c.InFlight
}

// All returns the servers as one. The connections that views have of their members are not in it: their clients are
// counted at the views. The counts of the last hour have no connection: see HasViews.
func (l *look) All() server {
	s := server{Server: &Server{}}
	for _, one := range l.Servers {
		for i := range one.Connections {
			if c := &one.Connections[i]; c.Front == "" {
				s.count(c)
			}
		}
		for i := range s.Hour {
			for kind := range s.Hour[i] {
				s.Hour[i][kind] += one.Hour[i][kind]
			}
		}
	}
	return s
}

// HasViews reports whether one of the servers is a view. Its requests are in the drawings of its members, too, and so
// twice in their sum: a member has had them, whoever has sent them.
func (l *look) HasViews() bool {
	return slices.ContainsFunc(l.Servers, func(s *server) bool { return len(s.Members) > 0 })
}

// Failing returns the servers that are failing.
func (l *look) Failing() []*server {
	n, _ := slices.BinarySearchFunc(l.Servers, 1,
		func(s *server, next int) int { return slices.Index(conditions, s.Condition) - next })
	return l.Servers[:n]
}

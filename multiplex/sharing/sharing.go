// Package sharing keeps what one session with a server must know to serve several
// clients: the log level that each wants, the resources that each subscribes to,
// and which client each task and each elicitation belongs to.
//
// The type parameter C identifies a client; its zero value is none. The types
// have no lock: the session that owns them guards them.
package sharing

import "slices"

// clientSet is a list of clients, each once.
type clientSet[C comparable] struct {
	list []C
	seen map[C]bool // nil while no second list has come
}

func (s *clientSet[C]) add(clients []C) {
	switch {
	case len(clients) == 0:
		return
	case len(s.list) == 0:
		s.list = slices.Clip(clients)
		return
	case s.seen == nil:
		s.seen = make(map[C]bool)
		for _, c := range s.list {
			s.seen[c] = true
		}
	}
	for _, c := range clients {
		if !s.seen[c] {
			s.seen[c] = true
			s.list = append(s.list, c)
		}
	}
}

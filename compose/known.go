package compose

import "sync"

// known is what all sessions know of members, by their names.
type known struct {
	mu      sync.Mutex // taken after session.mu
	late    map[string]bool
	failing map[string]map[*link]bool // the links that fail
}

// noteLate notes that a list has waited for a member in vain.
func (v *View) noteLate(member string) {
	v.known.mu.Lock()
	defer v.known.mu.Unlock()
	v.known.late[member] = true
}

// noteFailing notes that a link fails.
func (v *View) noteFailing(l *link) {
	k := &v.known
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.failing[l.m.Name] == nil {
		k.failing[l.m.Name] = make(map[*link]bool)
	}
	k.failing[l.m.Name][l] = true
}

// noteListed notes that a member has listed: it is neither late nor failing, for any session.
func (v *View) noteListed(l *link) {
	v.known.mu.Lock()
	defer v.known.mu.Unlock()
	delete(v.known.late, l.m.Name)
	delete(v.known.failing, l.m.Name)
}

// isKnownToBeSlow reports whether no list waits for a member: it is late, or fails for a session.
func (v *View) isKnownToBeSlow(member string) bool {
	v.known.mu.Lock()
	defer v.known.mu.Unlock()
	return v.known.late[member] || len(v.known.failing[member]) > 0
}

// forget removes the links of a session that is over.
func (k *known) forget(s *session) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, l := range s.links {
		delete(k.failing[l.m.Name], l)
	}
}

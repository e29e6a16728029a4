package sharing

import "slices"

// Level is the severity of a log message (RFC 5424). Lower levels are more
// verbose; the zero Level is none.
type Level int8

// unknownLevel is the level of a server that has lost it: no client wants it, so each level has to be set anew.
const unknownLevel Level = -1

// levelNames are the names that MCP gives the levels, from 1.
var levelNames = []string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// ParseLevel returns the level of that name, or none.
func ParseLevel(name string) Level { return Level(slices.Index(levelNames, name) + 1) }

// String returns the name of a level.
func (l Level) String() string {
	if l <= 0 {
		return ""
	}
	return levelNames[l-1]
}

// Levels merges the log levels that clients want. A server has one level, so it gets
// the most verbose one, and each client gets only the messages at its own level or
// above.
type Levels[C comparable] struct {
	wanted map[C]Level
	server Level // the level that the server has, or unknownLevel
}

// Needed returns the level that the server must have if client c wants level. It
// reports false if the server needs no new one.
func (s *Levels[C]) Needed(c C, level Level) (Level, bool) {
	for other, wanted := range s.wanted {
		if other != c && (level == 0 || wanted < level) {
			level = wanted
		}
	}
	return level, level != 0 && level != s.server
}

// Set records the level that a client wants. Without a client it does nothing.
func (s *Levels[C]) Set(c C, level Level) {
	var none C
	if c == none {
		return
	}
	if s.wanted == nil {
		s.wanted = make(map[C]Level)
	}
	s.wanted[c] = level
}

// Taken records that the server has taken a level.
func (s *Levels[C]) Taken(level Level) { s.server = level }

// Lost records that the server's level is unknown.
func (s *Levels[C]) Lost() { s.server = unknownLevel }

// Leave forgets a client. It returns the level that the server must then have, and
// false if it keeps its level.
func (s *Levels[C]) Leave(c C) (Level, bool) {
	delete(s.wanted, c)
	level, needed := s.Needed(c, 0)
	return level, needed && s.server != 0
}

// Wants reports whether a client wants log messages of that level.
func (s *Levels[C]) Wants(c C, level Level) bool { return level == 0 || s.wanted[c] <= level }

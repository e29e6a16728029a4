package httpanswer

import "net/http"

// Form is how an answer may come.
type Form uint8

const (
	// FormAny: as JSON or, if it takes long, as a stream of events.
	FormAny Form = iota
	// FormJSON: as JSON alone.
	FormJSON
	// FormEvents: as a stream of events, which the client prefers, or takes alone.
	FormEvents
)

// CanFlush reports whether a ResponseWriter, or one that it wraps, can flush.
func CanFlush(w http.ResponseWriter) bool {
	for {
		switch t := w.(type) {
		case interface{ FlushError() error }, http.Flusher:
			return true
		case interface{ Unwrap() http.ResponseWriter }:
			w = t.Unwrap()
		default:
			return false
		}
	}
}

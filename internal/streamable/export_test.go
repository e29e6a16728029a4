package streamable

import "time"

// ParseEventID reads the id of an event, and returns it as text.
func ParseEventID(text string) (string, bool) {
	id, ok := parseEventID(text)
	return id.String(), ok
}

// NeverStream makes only other messages turn a response into a stream.
func (h *Handler) NeverStream() { h.streamAfter = time.Hour }

// Kept returns what the events that are kept count for, in bytes.
func (h *Handler) Kept() int {
	h.store.mu.Lock()
	defer h.store.mu.Unlock()
	return h.store.bytes
}

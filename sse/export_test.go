package sse

// StreamExists reports whether the library still knows the stream.
func (h *Handler) StreamExists(id string) bool { return h.engine.server.StreamExists(id) }

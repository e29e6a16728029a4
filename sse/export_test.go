package sse

import r3 "github.com/r3labs/sse/v2"

// EngineBuffer is the number of places that a stream has in the library.
const EngineBuffer = engineBuffer

// Library is what serves the streams.
func (h *Handler) Library() *r3.Server { return h.engine.server }

// StreamExists reports whether the library still knows the stream.
func (h *Handler) StreamExists(id string) bool { return h.Library().StreamExists(id) }

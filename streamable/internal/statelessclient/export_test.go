package statelessclient

// SetLimits sets the bounds on the connections of all clients, on those of one, and on the
// calls that wait for input.
func (h *Handler) SetLimits(links, calls, held int) {
	h.pool.maxLinks, h.pool.maxCalls, h.held.max = links, calls, held
}

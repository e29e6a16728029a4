package statelessclient

// SetLimits sets the bounds on the connections of one client, and on the calls that wait
// for input.
func (h *Handler) SetLimits(calls, suspended int) {
	h.pool.maxCalls, h.suspended.max = calls, suspended
}

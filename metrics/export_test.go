package metrics

// MoveAll moves the series of every value of every label, those for all other
// values among them.
func MoveAll(m *Metrics) {
	with := func(values []string, do func(string)) {
		for _, v := range append(values, "no such value") {
			do(v)
		}
	}
	with(closedReasons(), m.ConnectionClosed)
	with(closedReasons(), func(reason string) { m.ConnectionLasted(reason, 0, 0, "") })
	with(rejectedReasons(), m.ConnectionRejected)
	with(postReasons(), m.PostRejected)
	with(states(), func(state string) { m.StateChanged("", state) })
	with(handshakeResults(), func(result string) { m.HandshakeDone(result, "", "", 0, "") })
	for _, end := range handshakeEnds() {
		m.HandshakeDone(end.result, end.phase, end.reason, 0, "")
	}
	with([]string{FromStart, FromPool, FromShared}, m.SessionTaken)
	with(gateReasons(), func(reason string) { m.GateRejected(reason, 0) })
	with(droppedReasons(), m.Dropped)
	with(matches(), m.ResponseMatched)
	with(methods(), func(method string) { m.RequestDone(method, "", 0, "") })
	with(errorTypes(), func(errorType string) { m.RequestDone("ping", errorType, 0, "") })
	with(childReasons(), m.ChildExited)
	with(holders(), m.OverBudget)
}

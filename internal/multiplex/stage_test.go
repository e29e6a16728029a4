package multiplex

import "testing"

// Whatever happens to a request, in whatever order: it is known whether its client has cancelled it, and whether the
// server has it. Progress says neither.
func TestStageSaysWhoHasARequest(t *testing.T) {
	for sequence := range sequences(steps) {
		var e entry
		isSent, isCanceled := false, false
		for _, s := range sequence {
			switch step(s) {
			case goesOut:
				isSent = isSent || !isCanceled // one that is withdrawn is out of the table
			case bounces:
				isSent = false
			case cancels:
				isCanceled = true
			}
			e.move(step(s))
		}
		if e.sent() != isSent || e.isCanceled() != isCanceled {
			t.Errorf("after %v: %v", sequence, e.stage)
		}
	}
}

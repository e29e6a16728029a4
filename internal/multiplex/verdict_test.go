package multiplex

import "testing"

// TestVerdict is the table of docs/reference/errors.md: what becomes of a response, by what
// it says and what the session knows.
func TestVerdict(t *testing.T) {
	one, several := matching{out: 1}, matching{out: 3}
	with := func(m matching, change func(m *matching)) matching { change(&m); return m }
	onShared := func(m *matching) { m.shared = true }
	noticed := func(m *matching) { m.notices = 1 }
	gaveUp := func(m *matching) { m.certainty = someGivenUp }
	named := func(m *matching) { m.manner = byNumber }
	namesCalls := func(m *matching) { m.manner = byNumberInCalls }
	spare := func(m *matching) { m.certainty = oneSpare } // all that are out are nobody's
	for _, row := range []struct {
		response     response
		own          matching // a session of one client
		want         verdict
		wantOnShared verdict
	}{
		{response{namesRequest, aResult}, several, toNamed, toNamed},
		{response{namesRequest, anError}, with(several, noticed), toNamed, toNamed},
		{response{comesWith, aResult}, several, toNamed, toNamed},
		{response{comesWith, anUnreadError}, with(several, noticed), toNamed, toNamed},
		{response{comesWithOver, aResult}, one, dropLate, dropLate},
		{response{comesWithOver, anUnreadError}, with(several, noticed), dropLate, dropLate},
		{response{namesOtherwise, aResult}, several, dropForeign, dropForeign},
		{response{namesOtherwise, anUnreadError}, with(one, noticed), dropForeign, dropForeign},
		{response{namesOver, aResult}, with(one, named), dropLate, dropLate},
		{response{namesOver, aResult}, one, toOldest, toOldest},
		{response{namesOver, aResult}, several, toOldest, failAll},
		{response{namesOver, aResult}, with(one, gaveUp), endSession, endSession},

		{response{namesNothing, anError}, with(one, noticed), dropNotice, dropNotice},
		{response{namesNothing, anEmptyResult}, with(one, noticed), dropNotice, dropNotice},
		{response{namesNothing, anUnreadError}, with(one, noticed), dropNotice, dropNotice},
		{response{namesNothing, anError}, with(matching{}, noticed), dropNotice, dropNotice},
		{response{namesNothing, aResult}, with(one, noticed), toOldest, toOldest},
		{response{namesNothing, anEmptyResult}, matching{out: 1, notices: 1, wantsEmpty: true}, toOldest, toOldest},

		{response{namesNothing, aResult}, matching{}, dropNothing, dropNothing},
		{response{namesNothing, anError}, matching{}, dropNothing, dropNothing},

		{response{namesNothing, anUnreadError}, one, toOnly, toOnly},
		{response{namesNothing, anUnreadError}, several, dropUnclear, dropUnclear},
		{response{namesNothing, anUnreadError}, with(one, gaveUp), toOnly, dropUnclear},

		{response{namesNothing, aResult}, one, toOldest, toOldest},
		{response{namesNothing, anEmptyResult}, one, toOldest, toOldest},
		{response{namesNothing, anError}, one, toOldest, toOldest},
		{response{namesNothing, aResult}, with(one, named), toOldest, toOldest},
		{response{namesNothing, aResult}, several, toOldest, failAll},
		{response{namesNothing, anError}, with(several, named), toOldest, failAll},
		{response{namesNothing, aResult}, matching{out: 3, certainty: oneAtATime}, toOldest, toOldest},
		{response{namesNothing, aResult}, with(one, namesCalls), toOldest, dropForeign},
		{response{namesNothing, anError}, with(several, namesCalls), toOldest, dropForeign},
		{response{namesNothing, aResult}, matching{out: 3, certainty: oneAtATime, manner: byNumberInCalls}, toOldest, dropForeign},
		{response{namesNothing, anUnreadError}, with(one, namesCalls), toOnly, dropForeign},
		{response{namesNothing, aResult}, with(one, gaveUp), endSession, endSession},
		{response{namesNothing, anUnreadError}, with(several, spare), toOldest, toOldest},
		{response{namesNothing, aResult}, with(several, spare), toOldest, toOldest},
	} {
		if got := row.own.verdict(row.response); got != row.want {
			t.Errorf("%+v on %+v: %d, want %d", row.response, row.own, got, row.want)
		}
		if s := with(row.own, onShared); s.verdict(row.response) != row.wantOnShared {
			t.Errorf("%+v on %+v: %d, want %d", row.response, s, s.verdict(row.response), row.wantOnShared)
		}
	}
}

// Whatever a session knows, a response that does not name its request never reaches one of
// several clients that may wait for it, and none gets what may be that to a request that was
// given up.
func TestVerdictNeverGuessesBetweenClients(t *testing.T) {
	manners := int(byNumberInCalls) + 1
	certainties := []certainty{certain, someGivenUp, oneAtATime, ambiguous} // in oneSpare no client waits for what is out
	for state := range manners << 3 {
		bits := state / manners
		for out := range 4 {
			for notices := range 2 {
				m := matching{shared: true, manner: manner(state % manners), certainty: certainties[bits&3], wantsEmpty: bits&4 > 0, out: out, notices: notices}
				for i := range 8 {
					c := content(i % 4)
					got := m.verdict(response{[]naming{namesNothing, namesOver}[i/4], c})
					reaches := got == toOldest || got == toOnly
					if reaches && (out == 0 || m.certainty.hasGivenUp() || out > 1 && !m.certainty.isSerial()) {
						t.Errorf("%+v: content %d reaches a client: %d", m, c, got)
					}
				}
			}
		}
	}
}

package bridge_test

import (
	"testing"

	. "github.com/mcp-sse/mcp-sse/internal/bridge"
)

// The moves of a start. Every event that a state does not name changes nothing, but for
// those of TestAnyStartEnds.
func TestNext(t *testing.T) {
	for _, move := range []struct {
		from   StartState
		event  StartEvent
		to     StartState
		action StartAction
	}{
		{Dialing, Dialed, AwaitingOwn, StartDelay},
		{Dialing, OwnInitialize, DueOwn, DoNothing},
		{Dialing, MoreDeclared, DueOwn, DoNothing},
		{Dialing, Needed, DueSynthetic, DoNothing},
		{DueSynthetic, OwnInitialize, DueOwn, DoNothing},
		{DueSynthetic, Dialed, InitializingSynthetic, SendSynthetic},
		{DueOwn, Dialed, InitializingOwn, SendOwn},
		{DueOwn, MoreDeclared, DueOwn, DoNothing},
		{AwaitingOwn, OwnInitialize, InitializingOwn, SendOwn},
		{AwaitingOwn, MoreDeclared, InitializingOwn, SendOwn},
		{AwaitingOwn, Needed, InitializingSynthetic, SendSynthetic},
		{AwaitingOwn, DelayOver, InitializingSynthetic, SendSynthetic},
		{InitializingSynthetic, OwnInitialize, InitializingSynthetic, DoNothing},
		{InitializingSynthetic, MoreDeclared, Superseded, Cancel},
		{InitializingOwn, MoreDeclared, InitializingOwn, DoNothing},
		{Joining, Dialed, Joining, DoNothing},
		{Superseded, Up, Again, DiscardSession},
		{Superseded, Down, Again, ReportCancelled},
		{Superseded, Late, Superseded, DoNothing},
		{Superseded, ServerReplaced, Superseded, DoNothing},
		{Superseded, ConnectionClosed, Abandoned, DoNothing},
		{Superseded, ListsTold, Superseded, StartReports},
		{Abandoned, Up, Gone, DiscardSession},
		{Abandoned, Down, Gone, ReportCancelled},
		{Abandoned, ServerReplaced, Abandoned, DoNothing},
		{Abandoned, ListsTold, Abandoned, DoNothing},
	} {
		to, action := Next(move.from, move.event)
		if to != move.to || action != move.action {
			t.Errorf("%v, %v: got %v, %v, want %v, %v", move.from, move.event, to, action, move.to, move.action)
		}
	}
}

// A start ends in whatever state it is, and its ends do not move.
func TestAnyStartEnds(t *testing.T) {
	for _, from := range []StartState{Dialing, DueSynthetic, DueOwn, Joining, AwaitingOwn, InitializingSynthetic, InitializingOwn} {
		for event, want := range map[StartEvent]struct {
			to     StartState
			action StartAction
		}{
			Up: {Started, UseSession}, Down: {Failed, ReportFailure},
			Late: {from, AnnounceLate}, ListsTold: {from, StartReports},
			ServerReplaced: {Superseded, Cancel}, ConnectionClosed: {Abandoned, Cancel},
		} {
			if to, action := Next(from, event); to != want.to || action != want.action {
				t.Errorf("%v, %v: got %v, %v, want %v, %v", from, event, to, action, want.to, want.action)
			}
		}
	}
	for _, end := range []StartState{Started, Failed, Again, Gone} {
		for _, event := range []StartEvent{
			Dialed, OwnInitialize, MoreDeclared, Needed, DelayOver, Late, ListsTold,
			ServerReplaced, ConnectionClosed, Up, Down,
		} {
			if to, action := Next(end, event); to != end || action != DoNothing {
				t.Errorf("%v, %v: got %v, %v, want nothing", end, event, to, action)
			}
		}
	}
}

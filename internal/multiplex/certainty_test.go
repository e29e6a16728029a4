package multiplex

import (
	"iter"
	"testing"
)

// sequences are all those of three things, which have the numbers below of.
func sequences(of int) iter.Seq[[3]int] {
	return func(yield func([3]int) bool) {
		for i := range of * of * of {
			if !yield([3]int{i / of / of, i / of % of, i % of}) {
				return
			}
		}
	}
}

// Whatever happens, in whatever order, it is not forgotten that the server has given an answer without a name, nor that
// a request was given up. One that has both is ambiguous.
func TestCertaintyForgetsNoDoubt(t *testing.T) {
sequences:
	for sequence := range sequences(doubts) {
		m, isSerial, hasGivenUp := matchState{}, false, false
		for _, d := range sequence {
			if afterDoubts[m.certainty][d] == impossible {
				continue sequences
			}
			m.noteDoubt(doubt(d))
			isSerial = isSerial || doubt(d) == answerUnnamed || doubt(d) == answerOfOne
			hasGivenUp = hasGivenUp || doubt(d) == requestGivenUp
		}
		c := m.certainty
		if c.isSerial() != isSerial || c.hasGivenUp() != hasGivenUp || (c == ambiguous) != (isSerial && hasGivenUp) {
			t.Errorf("after %v: %v", sequence, c)
		}
	}
}

// The server owes one answer fewer from an answer to one of several requests on, until it has given them or it does not
// matter any more.
func TestOneAnswerFewerIsExpected(t *testing.T) {
	for _, row := range []struct {
		doubts []doubt
		want   certainty
	}{
		{[]doubt{answerOfOne}, oneSpare},
		{[]doubt{answerOfOne, answerUnnamed}, oneSpare},
		{[]doubt{answerOfOne, answerUnnamed, spareGone}, oneAtATime},
		{[]doubt{answerOfOne, spareGone, answerUnnamed}, oneAtATime},
		{[]doubt{answerOfOne, requestGivenUp}, ambiguous},
		{[]doubt{answerOfOne, spareGone, requestGivenUp}, ambiguous},
		{[]doubt{answerUnnamed}, oneAtATime},
		{[]doubt{requestGivenUp}, someGivenUp},
	} {
		m := matchState{}
		for _, d := range row.doubts {
			m.noteDoubt(d)
		}
		if m.certainty != row.want {
			t.Errorf("after %v: %v, want %v", row.doubts, m.certainty, row.want)
		}
	}
}

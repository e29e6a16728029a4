package multiplex

import (
	"slices"
	"testing"
)

// Each value has its name: a new constant without one would show as an empty text, or not at all.
func TestEachValueHasItsName(t *testing.T) {
	last := map[string][]string{
		namesOtherwise.String(): targetNames[:], byNumberInCalls.String(): mannerNames[:], numberOfCall.String(): idFormNames[:],
		impossible.String(): certaintyNames[:], spareGone.String(): doubtNames[:], anUnreadError.String(): contentNames[:],
		dropForeign.String(): verdictNames[:], withdrawn.String(): stageNames[:], bounces.String(): stepNames[:],
	}
	for name, names := range last {
		if slices.Contains(names, "") || names[len(names)-1] != name {
			t.Errorf("%q is not the last of %q, or one is missing", name, names)
		}
	}
}

package diagnosis

import "testing"

// A step comes after the one that it needs, and has a name of its own.
func TestStepsAreInOrder(t *testing.T) {
	seen := map[string]bool{}
	for _, table := range [][]step{steps, loginSteps, connectorSteps} {
		for _, s := range table {
			if s.after != "" && !seen[s.after] {
				t.Errorf("%s is after %q, which is no step before it", s.name, s.after)
			}
			if seen[s.name] || s.try == nil {
				t.Errorf("%s: there are two, or nothing is tried", s.name)
			}
			seen[s.name] = true
		}
	}
}

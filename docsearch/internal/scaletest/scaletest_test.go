package scaletest

import "testing"

func TestQuadraticWorkFails(t *testing.T) {
	for name, tc := range map[string]struct {
		steps func(n int) int
		fails bool
	}{
		"linear":    {func(n int) int { return n * 1000 }, false},
		"quadratic": {func(n int) int { return n * n }, true},
	} {
		inner := &testing.T{}
		Linear(inner, 1000, func(n int) func() {
			return func() {
				sum := 0
				for i := range tc.steps(n) {
					sum += i ^ sum
				}
				sink = sum
			}
		})
		if inner.Failed() != tc.fails {
			t.Errorf("%s work fails: %t, want %t", name, inner.Failed(), tc.fails)
		}
	}
}

var sink int

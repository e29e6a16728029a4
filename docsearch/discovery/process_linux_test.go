package discovery

import (
	"strings"
	"testing"
)

func TestStartField(t *testing.T) {
	const rest = " S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20"
	for _, name := range []string{"docsearch", "a b", "a) S 1 (b", ""} {
		if got, err := startField([]byte("42 (" + name + ")" + rest)); got != "4711" || err != nil {
			t.Errorf("name %q: got %q, %v, want 4711", name, got, err)
		}
	}
	for _, stat := range []string{"", "42 (x) S 1", ")", "42 (x)" + strings.Replace(rest, "S", "Z", 1)} {
		if got, err := startField([]byte(stat)); err == nil {
			t.Errorf("stat %q: got %q", stat, got)
		}
	}
}

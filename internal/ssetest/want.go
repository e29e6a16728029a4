package ssetest

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// Must ends a test that cannot go on after an error.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Want checks that a test got what it wants. The two are compared as text, so that 1 is 1.0,
// and lists item by item. Only nil is nil.
func Want(t testing.TB, what string, got, want any) {
	t.Helper()
	g, w := reflect.ValueOf(got), reflect.ValueOf(want)
	same := fmt.Sprint(got) == fmt.Sprint(want) && (want != nil || got == nil)
	if g.Kind() == reflect.Slice && w.Kind() == reflect.Slice {
		same = g.Len() == w.Len()
		for i := 0; same && i < g.Len(); i++ {
			same = fmt.Sprint(g.Index(i)) == fmt.Sprint(w.Index(i))
		}
	}
	if !same {
		t.Errorf("%s: got %.4000s, want %.4000s", what, fmt.Sprint(got), fmt.Sprint(want))
	}
}

// WantText checks that the text of what a test got, such as an error, has all these parts.
func WantText(t testing.TB, what string, got any, parts ...string) {
	t.Helper()
	text := fmt.Sprint(got)
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s: got %.2000s, want %q in it", what, text, part)
		}
	}
}

// WantError checks that an error is the wanted one, as errors.Is has it.
func WantError(t testing.TB, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

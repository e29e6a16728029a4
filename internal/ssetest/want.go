package ssetest

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// Want checks that a test got what it wants. The two are compared as text, so that 1 is 1.0,
// and lists by their length too.
func Want(t testing.TB, what string, got, want any) {
	t.Helper()
	g, w := reflect.ValueOf(got), reflect.ValueOf(want)
	lists := g.Kind() == reflect.Slice && w.Kind() == reflect.Slice
	if fmt.Sprint(got) != fmt.Sprint(want) || lists && g.Len() != w.Len() {
		t.Errorf("%s: got %v, want %v", what, got, want)
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

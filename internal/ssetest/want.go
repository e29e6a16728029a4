package ssetest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// Want checks that a test got what it wants; the two are compared as text.
func Want(t testing.TB, what string, got, want any) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
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

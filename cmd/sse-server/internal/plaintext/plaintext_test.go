package plaintext

import "testing"

// A text of a server cannot steer a terminal.
func TestControlCharactersAreVisible(t *testing.T) {
	if got, want := Visible("a\x1b[31m\tb\r\nä\u202e\xff✓"), "a\\x1b[31m b\\r\\nä\\u202e\ufffd✓"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

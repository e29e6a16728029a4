package enum_test

import (
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/enum"
)

type color uint8

var words = enum.Words[color]{"red", "green", "blue"}

func TestEachValueHasItsWord(t *testing.T) {
	for value, word := range map[color]string{0: "", 1: "red", 2: "green", 3: "blue"} {
		if got := words.String(value); got != word {
			t.Errorf("%d: got %q, want %q", value, got, word)
		}
		if text, err := words.Marshal(value); err != nil || string(text) != word {
			t.Errorf("%d is written as %q, %v; want %q", value, text, err, word)
		}
		read := color(7)
		if err := words.Unmarshal([]byte(word), &read); err != nil || read != value {
			t.Errorf("%q is read as %d, %v; want %d", word, read, err, value)
		}
	}
}

func TestUnknownValueAndWord(t *testing.T) {
	const want = "want red, green or blue"
	if got := words.String(4); got != "value 4" {
		t.Errorf("got %q", got)
	}
	if text, err := words.Marshal(4); err == nil || err.Error() != want {
		t.Errorf("it is written as %q, %v", text, err)
	}
	value := color(2)
	if err := words.Unmarshal([]byte("Red"), &value); err == nil || err.Error() != want || value != 2 {
		t.Errorf("it is read as %d, %v", value, err)
	}
}

package shellword

import "testing"

func TestQuote(t *testing.T) {
	for word, want := range map[string]string{
		"": "''", "https://a.example/mcp": "https://a.example/mcp", "a b": "'a b'", "$(id)": "'$(id)'",
		"it's": `'it'\''s'`, "a\nb": "'a\nb'", "ü": "'ü'",
	} {
		if got := Quote(word); got != want {
			t.Errorf("%q: got %s, want %s", word, got, want)
		}
	}
}

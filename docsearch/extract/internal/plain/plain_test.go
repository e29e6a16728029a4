package plain

import (
	"slices"
	"strings"
	"testing"
)

func TestBuilder(t *testing.T) {
	for want, build := range map[string]func(b *Builder){
		"":          func(b *Builder) { b.NewLine(); b.BlankLine(); b.Tab(); b.Words(" \n ") },
		"one two\n": func(b *Builder) { b.Words(" one"); b.Words(" two "); b.NewLine() },
		"onetwo\n":  func(b *Builder) { b.Words("one"); b.Words("two") },
		"a\nb\n\nc\n": func(b *Builder) {
			b.Words("a")
			b.NewLine()
			b.NewLine()
			b.Words("b")
			b.BlankLine()
			b.NewLine()
			b.Words("c")
		},
		"a\tb\nc\n": func(b *Builder) {
			b.Words("a ")
			b.Tab()
			b.Words("b")
			b.NewLine()
			b.Tab()
			b.Words("c")
		},
		"  a\n   b\nc\n":        func(b *Builder) { b.Raw("  a\n   b\n"); b.NewLine(); b.Words("c") },
		"clean\nof\uFFFD all\n": func(b *Builder) { b.Raw("cl\x00ean\r\nof\xff"); b.Words(" a\ue000ll\ue001") },
	} {
		var b Builder
		if build(&b); b.String() != want {
			t.Errorf("got %q, want %q", b.String(), want)
		}
	}
}

func TestOffsetsAreThoseOfTheNextWord(t *testing.T) {
	var b Builder
	b.Words("one")
	b.BlankLine()
	if size := b.Size(); size != 3 {
		t.Errorf("%d bytes, want 3", size)
	}
	at := b.Len()
	b.Words("two three")
	if got := b.Heading(at); got != "two three" || b.Heading(100) != "" || b.List[0] != (Section{Offset: at, Heading: got}) {
		t.Errorf("the heading at %d is %q, %v", at, got, b.List)
	}
}

func TestHeadingsOfPages(t *testing.T) {
	var b Builder
	for range 2 {
		b.Page()
		at := b.Len()
		b.Words("top")
		b.Heading(at)
		b.NewLine()
		at = b.Len()
		b.Words("more")
		b.Heading(at)
	}
	want := []Section{{0, "top", 1}, {4, "more", 1}, {10, "top", 2}, {14, "more", 2}}
	if !slices.Equal(b.List, want) {
		t.Errorf("got %v, want %v", b.List, want)
	}
}

func TestOneLine(t *testing.T) {
	long := strings.Repeat("ü", 200)
	for text, want := range map[string]string{" a\n\tb ": "a b", "a\xffb": "ab", long: long[:300] + "…", strings.Repeat(" ", 5000) + "a": ""} {
		if got := OneLine(text); got != want {
			t.Errorf("%.20q: got %q, want %q", text, got, want)
		}
	}
}

func TestSectionsAreBounded(t *testing.T) {
	var s Sections
	for i := range MaxSections + 5 {
		s.Add(Section{Offset: i, Heading: "h", Page: 1})
	}
	if last := s.List[len(s.List)-1]; len(s.List) != MaxSections || !s.Full() || last != (Section{Offset: MaxSections - 1}) {
		t.Errorf("%d sections, the last is %+v", len(s.List), last)
	}
	if s.Title() != "h" || new(Sections).Title() != "" {
		t.Errorf("the title is %q", s.Title())
	}
}

func FuzzClean(f *testing.F) {
	f.Add("a\r\n\xff\ue000\x00b")
	f.Fuzz(func(t *testing.T, text string) {
		got := Clean(text)
		if got != strings.ToValidUTF8(got, "") || strings.ContainsAny(got, "\x00\ue000\ue001\r") || Clean(got) != got {
			t.Errorf("%q becomes %q", text, got)
		}
	})
}

package signedid_test

import (
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/signedid"
	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

var key = []byte(strings.Repeat("k", signedid.MinKey))

func TestVerify(t *testing.T) {
	s := signedid.New(key, "a", "")
	id := s.New("ada")
	if !regexp.MustCompile(`^[A-Z2-7]{8}\.[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\.[\w-]{22}$`).MatchString(id) || id == s.New("ada") {
		t.Errorf("got the id %s", id)
	}
	if !s.Verify(id, "ada") || !signedid.New(key, "a", "").Verify(id, "ada") { // in another process too
		t.Errorf("%s does not verify", id)
	}
	replica, random, mac := id[:8], id[9:45], id[46:]
	for name, text := range map[string]string{
		"empty":           "",
		"dots":            "..",
		"a UUID":          "5d3a1a1e-8f5b-4f6a-9d5e-3c1f8a1e7b42",
		"truncated":       id[:len(id)-1],
		"cut at a dot":    replica + "." + random,
		"extended":        id + "A",
		"blank at an end": id + " ",
		"control":         replica + "." + random[:35] + "\x00." + mac,
		"another replica": "AAAAAAAA." + random + "." + mac,
		"moved bytes":     replica + random[:1] + "." + random[1:] + "." + mac,
		"moved dot":       replica + "." + random[:10] + "." + random[10:] + "." + mac,
		"no signature":    replica + "." + random + "." + strings.Repeat("A", 22),
		"other alphabet":  replica + "." + random + "." + mac[:21] + "=",
		"10 KB":           replica + "." + strings.Repeat("A", 10_000) + "." + mac,
	} {
		if s.Verify(text, "ada") {
			t.Errorf("%s: %q verifies", name, text)
		}
	}
	for i := range id {
		changed := []byte(id)
		changed[i] ^= 1
		if s.Verify(string(changed), "ada") {
			t.Errorf("%s verifies", changed)
		}
	}
	for name, other := range map[string]*signedid.Issuer{
		"another key": signedid.New([]byte(strings.Repeat("l", signedid.MinKey)), "a", ""), "another scope": signedid.New(key, "b", ""),
		"random keys": signedid.New(nil, "a", ""),
	} {
		if other.Verify(id, "ada") {
			t.Errorf("%s: the id verifies", name)
		}
	}
	for _, principal := range []string{"", "ad", "adaa", "Ada"} {
		if s.Verify(id, principal) {
			t.Errorf("the id verifies for %q", principal)
		}
	}
}

// An id that does not verify costs the same, however long it is.
func TestVerifyIsCheap(t *testing.T) {
	s := signedid.New(key, "", "")
	id := s.New("")
	most := testing.AllocsPerRun(10, func() { s.Verify(id, "ada") })
	for _, text := range []string{strings.Repeat("A", 1<<20), "A." + strings.Repeat(".", 1<<20) + id, id[:36] + strings.Repeat("A", 22)} {
		if got := testing.AllocsPerRun(10, func() { s.Verify(text, "ada") }); got > most {
			t.Errorf("%.40s… (%d bytes): %v allocations, want at most %v", text, len(text), got, most)
		}
	}
}

// Ids that have ended do not verify, and what is kept of them is bounded.
func TestEnd(t *testing.T) {
	s := signedid.New(key, "", "")
	ids := make([]string, 5000)
	for i := range ids {
		ids[i] = s.New("")
		s.End(ids[i])
		s.End(ids[i]) // again: it takes one place
	}
	ended := 0
	for _, id := range ids {
		if !s.Verify(id, "") {
			ended++
		}
	}
	if ended != 4096 || s.Verify(ids[len(ids)-1], "") {
		t.Errorf("%d ids have ended", ended)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				id := s.New("")
				if !s.Verify(id, "") {
					t.Error("a new id does not verify")
				}
				s.End(id)
			}
		})
	}
	wg.Wait()
}

// Ids name the replica that was given, and each Issuer knows its own.
func TestMade(t *testing.T) {
	a, b := signedid.New(key, "", "AAAAAAAA"), signedid.New(key, "", "BBBBBBBB")
	id := a.New("ada")
	if !strings.HasPrefix(id, "AAAAAAAA.") || !a.Made(id) || b.Made(id) || !b.Verify(id, "ada") {
		t.Errorf("got %s", id)
	}
}

func TestHash(t *testing.T) {
	h := signedid.New(key, "a", "").Hash("ada", "192.0.2.1/32")
	if h != signedid.New(key, "a", "other").Hash("ada", "192.0.2.1/32") {
		t.Error("another replica has another hash")
	}
	for name, other := range map[string]uint64{
		"parts": signedid.New(key, "a", "").Hash("ada1", "92.0.2.1/32"), "scope": signedid.New(key, "b", "").Hash("ada", "192.0.2.1/32"),
		"key": signedid.New(nil, "a", "").Hash("ada", "192.0.2.1/32"),
	} {
		if h == other {
			t.Errorf("%s: the same hash", name)
		}
	}
}

func TestShort(t *testing.T) {
	s := signedid.New(key, "", "")
	id := s.New("")
	if got := signedid.Short(id); got != id[9:17] || got == signedid.Short(s.New("")) {
		t.Errorf("got %s for %s", got, id)
	}
	for text, want := range map[string]string{"": "", "abc": "abc", "5d3a1a1e-8f5b-4f6a-9d5e-3c1f8a1e7b42": "5d3a1a1e"} {
		ssetest.Want(t, text, signedid.Short(text), want)
	}
}

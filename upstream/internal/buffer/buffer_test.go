package buffer

import (
	"bytes"
	"errors"
	"testing"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// FuzzSplitter compares the splitter with bytes.Split for any chunks.
func FuzzSplitter(f *testing.F) {
	f.Add([]byte("a\nbc\n\ndef"), uint8(2), uint8(1))
	f.Add([]byte("\n\n"), uint8(1), uint8(3))
	f.Add([]byte("too long\nok\n"), uint8(3), uint8(4))
	f.Add([]byte("exactly8\n"), uint8(8), uint8(9))
	f.Fuzz(func(t *testing.T, data []byte, limit, step uint8) {
		s := Splitter{max: int(limit)}
		size := int(step) + 1
		var got [][]byte
		var ends []error
		for rest := data; len(rest) > 0; {
			chunk := bytes.Clone(rest[:min(size, len(rest))])
			rest = rest[len(chunk):]
			for p := chunk; len(p) > 0; {
				var (
					line []byte
					err  error
				)
				line, p, err = s.Next(p)
				switch {
				case errors.Is(err, jsonrpc.ErrTooLong):
					got = append(got, nil)
					ends = append(ends, err)
				case line != nil:
					got = append(got, line)
				}
			}
			clear(chunk) // lines must be copies
		}
		last, lastErr := s.Last()
		want := bytes.Split(data, []byte("\n"))
		for i, line := range want {
			end := i == len(want)-1
			switch {
			case end && len(line) > int(limit):
				checkEnds(t, lastErr, line)
				continue
			case len(line) > int(limit):
				if len(got) == 0 || got[0] != nil {
					t.Fatalf("line %d of %d bytes was not refused: %q", i, len(line), got)
				}
				checkEnds(t, ends[0], line)
				ends = ends[1:]
			case end:
				if !bytes.Equal(last, line) {
					t.Fatalf("last line: got %q, want %q", last, line)
				}
				continue
			case len(got) == 0 || got[0] == nil || !bytes.Equal(got[0], line):
				t.Fatalf("line %d: got %q, want %q", i, got, line)
			}
			got = got[1:]
		}
		if len(got) > 0 {
			t.Fatalf("more lines than there are: %q", got)
		}
	})
}

// checkEnds expects err to hold the ends of a line.
func checkEnds(t *testing.T, err error, line []byte) {
	t.Helper()
	long, ok := errors.AsType[*jsonrpc.TooLongError](err)
	if !ok || !bytes.Equal(long.Head, line[:min(len(line), HeadBytes)]) || !bytes.Equal(long.Tail, line[max(0, len(line)-tailBytes):]) {
		t.Errorf("a line of %d bytes gave %v, %.80v", len(line), err, long)
	}
}

// However a message is cut into pieces, its ends are the same, joined ones too.
func TestEndsOfAMessage(t *testing.T) {
	data := make([]byte, 3*HeadBytes)
	for i := range data {
		data[i] = byte(i % 251)
	}
	for _, n := range []int{0, 1, tailBytes - 1, tailBytes, tailBytes + 1, HeadBytes - 1, HeadBytes, HeadBytes + 1, HeadBytes + tailBytes + 1, len(data)} {
		for _, step := range []int{1, 100, tailBytes, HeadBytes + 7} {
			for _, first := range []int{0, min(1, n), n / 2, n} {
				var e, rest Ends
				e.Add(data[:first])
				for from := first; from < n; from += step {
					rest.Add(data[from:min(n, from+step)])
				}
				e.Join(&rest)
				checkEnds(t, e.Error(), data[:n])
			}
		}
	}
}

func TestQueueKeepsOrderAndCount(t *testing.T) {
	var f FIFO
	next, want := byte(0), byte(0)
	for round := range 200 {
		for range round%7 + 1 {
			f.Push([]byte{next})
			next++
		}
		for range min(round%5+1, f.Len()) {
			if got := f.Pop(); got[0] != want {
				t.Fatalf("got message %d, want %d", got[0], want)
			}
			want++
		}
		if f.Bytes != f.Len()*(1+ItemCost) {
			t.Fatalf("%d bytes counted for %d messages", f.Bytes, f.Len())
		}
	}
	for f.Len() > 0 {
		f.Pop()
	}
	if f.Bytes != 0 || cap(f.items) > keepItems {
		t.Errorf("an empty fifo counts %d bytes and keeps room for %d", f.Bytes, cap(f.items))
	}
}

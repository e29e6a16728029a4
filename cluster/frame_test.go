package cluster

import (
	"bytes"
	"encoding/json"
	"testing"
)

// FuzzFrame checks that only frames of this cluster are opened, whatever comes, and that a
// frame comes out as it went in.
func FuzzFrame(f *testing.F) {
	key := bytes.Repeat([]byte("k"), 32)
	own, other := newSealer(key, "a"), newSealer(key, "b")
	f.Add([]byte("payload"), uint64(1), uint32(2), byte(kindData), 5)
	f.Add(own.seal(&frame{to: everyone, from: "ABCDEFGH"}), uint64(1<<63), uint32(1<<31), byte(0), -1)
	f.Fuzz(func(t *testing.T, payload []byte, number uint64, seq uint32, k byte, flip int) {
		want := frame{kind: kind(k), flags: k, to: "ABCDEFGH", from: everyone, number: number, seq: seq, ack: seq + 1, room: seq / 2, payload: payload}
		data := own.seal(&want)
		got, ok := own.open(data)
		if !ok || !bytes.Equal(got.payload, payload) {
			t.Fatalf("got %+v, %v", got, ok)
		}
		if got.payload, want.payload = nil, nil; got.to != want.to || got.from != want.from || got.number != number || got.kind != want.kind ||
			got.flags != k || got.seq != seq || got.ack != want.ack || got.room != want.room {
			t.Fatalf("got %+v, want %+v", got, want)
		}
		if _, ok := other.open(data); ok {
			t.Error("another cluster opens it")
		}
		if _, ok := own.open(payload); ok && len(payload) < headBytes+sealBytes {
			t.Error("what no replica has made is opened")
		}
		data[uint(flip)%uint(len(data))] ^= 1
		if _, ok := own.open(data); ok {
			t.Error("a changed frame is opened")
		}
		_ = json.Unmarshal(payload, new(heartbeat))
	})
}

// A number is new once. Those that are much older than the last one count as known.
func TestNumbers(t *testing.T) {
	const window = seenBlocks * 64
	s := make(numbers, seenBlocks)
	for _, step := range []struct {
		n     uint64
		known bool
	}{
		{5, false}, {5, true}, {3, false}, {3, true}, {window + 4, false}, {5, true}, {4, true}, {64, false}, {64, true},
		{10*window + 64, false}, {64, true}, {9*window + 128, false}, {9*window + 64, true}, {9*window + 128, true}, {10*window + 64, true},
		{11*window + 64, false}, {10*window + 128, false}, {10*window + 64, true}, {1<<64 - 1, false}, {1<<64 - 1, true},
	} {
		if known := s.has(step.n); known != step.known {
			t.Errorf("%d: known %v", step.n, known)
		} else if !known {
			s.add(step.n)
		}
	}
}

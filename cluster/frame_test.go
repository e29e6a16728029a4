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
	f.Add([]byte("payload"), uint64(1), byte(kindHeartbeat), 5)
	f.Add(own.seal(&frame{to: everyone, from: "ABCDEFGH"}), uint64(1<<63), byte(0), -1)
	f.Fuzz(func(t *testing.T, payload []byte, number uint64, k byte, flip int) {
		want := frame{kind: kind(k), to: "ABCDEFGH", from: everyone, number: number, payload: payload}
		data := own.seal(&want)
		got, ok := own.open(data)
		if !ok || !bytes.Equal(got.payload, payload) {
			t.Fatalf("got %+v, %v", got, ok)
		}
		if got.payload, want.payload = nil, nil; got.to != want.to || got.from != want.from || got.number != number || got.kind != want.kind {
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

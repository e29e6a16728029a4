package cluster

import (
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"

	"golang.org/x/crypto/chacha20poly1305"
)

// kind says what a frame is for.
type kind byte

const (
	kindData      kind = iota + 1 // the next part of a request or response
	kindAck                       // what has been received, nothing else
	kindProbe                     // asks for an ack
	kindReset                     // ends an exchange that the sender does not know or has given up
	kindAnswered                  // ends exchanges whose responses have come: it acknowledges several at once
	kindHeartbeat                 // to all replicas
	kindAsk                       // asks who subscribes to a subject
	kindHere                      // the answer
)

const (
	fromOwner byte = 1 << iota // flag: the receiver has begun the exchange
	last                       // flag: no part follows
)

// frame is a NATS message between replicas.
type frame struct {
	kind     kind
	flags    byte
	to, from string // ids of replicas
	number   uint64 // of the exchange, or of the heartbeat
	seq      uint32 // number of the part
	ack      uint32 // the part that the sender of this frame expects next
	room     uint32 // the first part for which the sender of this frame has no room
	payload  []byte
}

const (
	frameVersion = 2
	idBytes      = 8
	sealBytes    = chacha20poly1305.NonceSizeX + chacha20poly1305.Overhead
	headBytes    = 3 + 2*idBytes + 8 + 3*4
	everyone     = "--------" // the receiver of a frame whose subject says for whom it is
)

// sealer encrypts and authenticates frames. It is safe for concurrent use.
type sealer struct{ cipher.AEAD }

// newSealer returns the sealer of a cluster, whose key differs from those of other clusters and of ids.
func newSealer(key []byte, cluster string) *sealer {
	derive := hmac.New(sha256.New, key)
	derive.Write([]byte("frames of cluster " + cluster))
	aead, _ := chacha20poly1305.NewX(derive.Sum(nil)) // the key has its length, and nonces are long enough to be random
	return &sealer{aead}
}

// seal returns the bytes of a frame.
func (s *sealer) seal(f *frame) []byte {
	b := make([]byte, chacha20poly1305.NonceSizeX, headBytes+len(f.payload)+sealBytes)
	nonce := b
	_, _ = rand.Read(nonce) // never fails
	b = append(b, frameVersion, byte(f.kind), f.flags)
	b = append(append(b, f.to...), f.from...)
	b = binary.BigEndian.AppendUint64(b, f.number)
	b, _ = binary.Append(b, binary.BigEndian, []uint32{f.seq, f.ack, f.room})
	b = append(b, f.payload...)
	return s.Seal(nonce, nonce, b[len(nonce):], nil) // in place
}

// open returns the frame in data, whose payload is a part of data, which it changes. It reports false unless a
// replica with the same key and cluster has made it.
func (s *sealer) open(data []byte) (f frame, ok bool) {
	if len(data) < headBytes+sealBytes {
		return f, false
	}
	nonce, sealed := data[:chacha20poly1305.NonceSizeX], data[chacha20poly1305.NonceSizeX:]
	data, err := s.Open(sealed[:0], nonce, sealed, nil)
	if err != nil || data[0] != frameVersion {
		return f, false
	}
	ids, numbers := data[3:3+2*idBytes], data[3+2*idBytes:headBytes]
	return frame{
		kind: kind(data[1]), flags: data[2], to: string(ids[:idBytes]), from: string(ids[idBytes:]),
		number: binary.BigEndian.Uint64(numbers), seq: binary.BigEndian.Uint32(numbers[8:]),
		ack: binary.BigEndian.Uint32(numbers[12:]), room: binary.BigEndian.Uint32(numbers[16:]),
		payload: data[headBytes:],
	}, true
}

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
	kindHeartbeat kind = iota + 1 // to all replicas
	kindAsk                       // asks who subscribes to a subject
	kindHere                      // the answer
)

// frame is a NATS message between replicas.
type frame struct {
	kind     kind
	to, from string // ids of replicas
	number   uint64 // of the heartbeat, or of the question and its answer
	payload  []byte
}

const (
	frameVersion = 3
	idBytes      = 8
	sealBytes    = chacha20poly1305.NonceSizeX + chacha20poly1305.Overhead
	headBytes    = 2 + 2*idBytes + 8
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
	b = append(b, frameVersion, byte(f.kind))
	b = append(append(b, f.to...), f.from...)
	b = binary.BigEndian.AppendUint64(b, f.number)
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
	ids, rest := data[2:2+2*idBytes], data[2+2*idBytes:]
	return frame{
		kind: kind(data[1]), to: string(ids[:idBytes]), from: string(ids[idBytes:]),
		number: binary.BigEndian.Uint64(rest), payload: data[headBytes:],
	}, true
}

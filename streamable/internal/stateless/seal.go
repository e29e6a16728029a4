package stateless

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"

	"github.com/mcp-sse/mcp-sse/jsonrpc"
)

// claims are what a request state says: which held call goes on, for whom, and with which
// request.
type claims struct {
	Call   string `json:"c"` // the id of the held call
	Round  int    `json:"r"`
	Digest digest `json:"d"`
}

// sealer seals request states, so that clients can neither read nor change them. Its key
// lives as long as the process, like the calls. It is safe for concurrent use.
type sealer struct{ aead cipher.AEAD }

func newSealer() sealer {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // the key has a length of AES
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err) // the block is one of AES
	}
	return sealer{aead}
}

// seal returns the request state for claims.
func (s sealer) seal(c claims) string {
	plain, _ := json.Marshal(c) // strings, numbers and bytes always have a JSON form
	return base64.RawURLEncoding.EncodeToString(s.aead.Seal(nil, nil, plain, nil))
}

// maxState bounds a request state that is looked at, in bytes. Those of seal are shorter.
const maxState = 1024

var errState = errors.New("requestState is not what this server gave out")

// open returns the claims of a request state. It fails for one that seal has not made.
func (s sealer) open(state string) (c claims, err error) {
	if len(state) > maxState {
		return c, errState
	}
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(state)
	if err != nil || strings.ContainsAny(state, "\r\n") { // which the decoder skips
		return c, errState
	}
	plain, err := s.aead.Open(nil, nil, sealed, nil)
	if err != nil || json.Unmarshal(plain, &c) != nil {
		return c, errState
	}
	return c, nil
}

// digest is what must be the same in all rounds of a call: who asks for what.
type digest []byte

func (q *request) digest() digest {
	params := q.Params()
	for _, name := range []string{"_meta", "inputResponses", "requestState"} {
		params = jsonrpc.RemoveMember(params, name)
	}
	who, _ := json.Marshal([]string{q.principal, q.Method}) // strings always have a JSON form
	sum := sha256.Sum256(append(who, canonical(params)...))
	return sum[:]
}

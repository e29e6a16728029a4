package jsonrpc

import (
	"encoding/json"
	"strconv"
)

// NumberID returns the id that is n.
func NumberID(n int64) ID { return ID(strconv.FormatInt(n, 10)) }

// Integer returns the positive integer whose JSON form is raw. It reports false if
// raw is none, or has more than 15 digits: not every peer keeps those.
func Integer(raw json.RawMessage) (n int64, ok bool) {
	if len(raw) == 0 || len(raw) > 15 || raw[0] == '0' {
		return 0, false
	}
	for _, c := range raw {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, true
}

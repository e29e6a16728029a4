package jsonrpc

import (
	"strconv"
	"strings"

	"github.com/mcp-sse/mcp-sse/internal/rawjson"
)

// MaxIDBytes is the longest id, in bytes of its JSON form, that Parse accepts.
const MaxIDBytes = 1024

// ID is a request id in the JSON form in which it came: `1`, `1.5`, `"a"`. Two ids
// are the same if their bytes are. Empty means that there is none.
type ID string

// NumberID returns the id that is n.
func NumberID(n int64) ID { return ID(strconv.FormatInt(n, 10)) }

// Null is the id of an error response to a message whose id could not be read.
const Null ID = "null"

// Alike reports whether two ids can only mean the same request: an integer, the same with a
// fraction of zeros, and its decimal in a string are alike. Some programs change one into
// the other.
func Alike(a, b ID) bool { return a == b || plainID(a) == plainID(b) }

// plainID returns an id in the form that those alike share.
func plainID(id ID) string {
	text, isText := rawjson.Text([]byte(id))
	if !isText {
		text = string(id)
	}
	if whole, fraction, ok := strings.Cut(text, "."); ok && !isText && strings.Trim(fraction, "0") == "" {
		text = whole
	}
	digits := strings.TrimPrefix(text, "-")
	if digits == "" || strings.Trim(digits, "0123456789") != "" || len(digits) > 1 && digits[0] == '0' {
		return string(id)
	}
	return text
}

func checkID(raw []byte) error {
	if len(raw) > MaxIDBytes {
		return Errorf(CodeInvalidRequest, "the id is longer than %d bytes", MaxIDBytes)
	}
	switch c := raw[0]; {
	case c == '"', c == '-', c >= '0' && c <= '9', c == 'n':
		return nil
	}
	return Errorf(CodeInvalidRequest, "the id must be a string or a number")
}

package index

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"hash/fnv"
	"math"
)

// cursor is a place in the results of one query.
type cursor struct {
	query  uint64  // hash of the query
	at     int     // number of candidates, or of fused results, before
	cap    float64 // relevance of the results before, which no later one exceeds
	hybrid bool    // the results before were by words and vectors
}

// The first byte of a cursor.
const (
	lexical = 1
	hybrid  = 2
)

const cursorBytes = 1 + 8 + 8 + 8 + 4

// maxCursorAt bounds a place.
const maxCursorAt = 1 << 40

func (c cursor) String() string {
	b := make([]byte, 0, cursorBytes)
	b = append(b, lexical)
	if c.hybrid {
		b[0] = hybrid
	}
	b = binary.BigEndian.AppendUint64(b, c.query)
	b = binary.BigEndian.AppendUint64(b, uint64(c.at))
	b = binary.BigEndian.AppendUint64(b, math.Float64bits(c.cap))
	b = binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	return base64.RawURLEncoding.EncodeToString(b)
}

// parseCursor returns the place that s names in the results of a query; the first one
// if s is empty.
func parseCursor(s string, query uint64) (cursor, error) {
	if s == "" {
		return cursor{query: query, cap: 1}, nil
	}
	if len(s) != base64.RawURLEncoding.EncodedLen(cursorBytes) {
		return cursor{}, ErrCursor
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(s)
	if err != nil || b[0] != lexical && b[0] != hybrid || binary.BigEndian.Uint32(b[25:]) != crc32.ChecksumIEEE(b[:25]) {
		return cursor{}, ErrCursor
	}
	c := cursor{
		hybrid: b[0] == hybrid,
		query:  binary.BigEndian.Uint64(b[1:]),
		at:     int(binary.BigEndian.Uint64(b[9:])),
		cap:    math.Float64frombits(binary.BigEndian.Uint64(b[17:])),
	}
	if c.query != query || c.at < 0 || c.at > maxCursorAt || !(c.cap >= 0 && c.cap <= 1) {
		return cursor{}, ErrCursor
	}
	return c, nil
}

// hashOf tells queries apart. The limit may change from page to page.
func hashOf(q *Query) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%q %q %q %q %g", q.Folders, q.Text, q.Concepts, q.Terms, q.Threshold)
	return h.Sum64()
}

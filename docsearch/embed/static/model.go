// Package static makes vectors of texts from a table of word vectors: the vector of a text is
// the weighted sum of those of its words. It needs no other program, no download, and some
// sixty microseconds for a passage.
//
// The table in the binary, words.model, has English words. Command makemodel makes it from
// the word vectors of GloVe; README.md beside it tells how, and under which licences.
package static

import (
	"crypto/sha256"
	_ "embed"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
)

//go:embed words.model
var shipped string

// Default returns the model in the binary.
var Default = sync.OnceValues(func() (*Model, error) { return Read(shipped) })

// The form of a file: magic, the length of the header as four bytes, the header as JSON, and
// the body: the words, each followed by a line feed, a scale for each word, and a row for
// each word. A number of a vector is that of the row times the scale. Numbers are
// little-endian.
const (
	magic         = "DSWORDS1"
	lengthBytes   = 4
	scaleBytes    = 4
	maxHeader     = 1 << 20
	maxWords      = 1 << 22
	maxDimensions = 4096
)

// header has the sizes of the body. Read compares them with the size of the file before it allocates
// memory.
type header struct {
	Name       string `json:"name"`
	Words      int    `json:"words"`
	WordBytes  int    `json:"wordBytes"`
	Dimensions int    `json:"dimensions"`
	Checksum   string `json:"sha256"` // of the body
	Source     string `json:"source"`
	License    string `json:"license"`
}

// Model is a table of word vectors. It is safe for concurrent use.
type Model struct {
	head    header
	rows    map[string]int32
	scales  []float32
	average float64 // of the scales
	table   string  // the rows
}

// Read reads a file of words. It fails with what is wrong with it.
func Read(data string) (*Model, error) {
	h, body, err := readHeader(data)
	if err != nil {
		return nil, fmt.Errorf("the file of words is damaged: %w", err)
	}
	m := &Model{head: h, rows: make(map[string]int32, h.Words), scales: make([]float32, h.Words)}
	scales := body[h.WordBytes : h.WordBytes+scaleBytes*h.Words]
	m.table = body[h.WordBytes+scaleBytes*h.Words:]
	for word := range strings.Lines(body[:h.WordBytes]) {
		m.rows[strings.TrimSuffix(word, "\n")] = int32(len(m.rows))
	}
	if len(m.rows) != h.Words || body[h.WordBytes-1] != '\n' {
		return nil, fmt.Errorf("the file of words is damaged: it has %d words, and says %d", len(m.rows), h.Words)
	}
	for i := range m.scales {
		bits := binary.LittleEndian.Uint32([]byte(scales[scaleBytes*i : scaleBytes*(i+1)]))
		m.scales[i] = math.Float32frombits(bits)
		if s := float64(m.scales[i]); math.IsNaN(s) || s < 0 || s > 1 {
			return nil, fmt.Errorf("the file of words is damaged: word %d has the scale %v", i, s)
		}
		m.average += float64(m.scales[i]) / float64(h.Words)
	}
	return m, nil
}

// readHeader returns the header of a file, whose sizes agree with the file, and its body.
func readHeader(data string) (h header, body string, err error) {
	rest, ok := strings.CutPrefix(data, magic)
	if !ok || len(rest) < lengthBytes {
		return h, "", errors.New("it does not begin as one")
	}
	n := int64(binary.LittleEndian.Uint32([]byte(rest[:lengthBytes])))
	rest = rest[lengthBytes:]
	if n > maxHeader || n > int64(len(rest)) {
		return h, "", fmt.Errorf("its header has %d bytes; %d are allowed, and %d are there", n, maxHeader, len(rest))
	}
	if err := json.Unmarshal([]byte(rest[:n]), &h); err != nil {
		return h, "", fmt.Errorf("its header: %w", err)
	}
	body = rest[n:]
	if h.Words < 1 || h.Words > maxWords || h.Dimensions < 1 || h.Dimensions > maxDimensions || h.WordBytes < 1 ||
		h.WordBytes > len(body) {
		return h, "", fmt.Errorf("it says %d words of %d bytes, and %d dimensions", h.Words, h.WordBytes, h.Dimensions)
	}
	if want := h.WordBytes + h.Words*(scaleBytes+h.Dimensions); want != len(body) {
		return h, "", fmt.Errorf("its body has %d bytes instead of %d", len(body), want)
	}
	if sum := sha256.Sum256([]byte(body)); hex.EncodeToString(sum[:]) != h.Checksum {
		return h, "", errors.New("its checksum is wrong")
	}
	return h, body, nil
}

// Word is a word with its vector, which has its weight as a factor.
type Word struct {
	Text   string
	Vector []float64
}

// About describes the vectors of a file.
type About struct {
	Name, Source, License string
}

// Encode returns the file of some words, at least one. The same words give the same bytes.
func Encode(about About, words []Word) ([]byte, error) {
	var list, scales, rows []byte
	most := 0.0
	for _, w := range words {
		for _, f := range w.Vector {
			most = max(most, math.Abs(f))
		}
	}
	for _, w := range words {
		if w.Text == "" || strings.Contains(w.Text, "\n") || len(w.Vector) != len(words[0].Vector) {
			return nil, fmt.Errorf("the word %q cannot be in a file, or has %d dimensions", w.Text, len(w.Vector))
		}
		list = append(append(list, w.Text...), '\n')
		largest := 0.0
		for _, f := range w.Vector {
			largest = max(largest, math.Abs(f))
		}
		scale := float32(largest / most / math.MaxInt8)
		scales = binary.LittleEndian.AppendUint32(scales, math.Float32bits(scale))
		for _, f := range w.Vector {
			number := int8(0)
			if largest > 0 {
				number = int8(math.Round(f / largest * math.MaxInt8))
			}
			rows = append(rows, byte(number))
		}
	}
	body := append(append(list, scales...), rows...)
	sum := sha256.Sum256(body)
	head, err := json.Marshal(header{Name: about.Name, Words: len(words), WordBytes: len(list),
		Dimensions: len(words[0].Vector), Checksum: hex.EncodeToString(sum[:]), Source: about.Source,
		License: about.License})
	if err != nil {
		return nil, err
	}
	file := binary.LittleEndian.AppendUint32([]byte(magic), uint32(len(head)))
	return append(append(file, head...), body...), nil
}

// Package vectors keeps the vectors of texts in a file, and finds those near to another.
package vectors

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"sync"
	"unsafe"

	mmap "github.com/blevesearch/mmap-go"
)

// Key is the hash of a text, by which its vector is found.
type Key [16]byte

// KeyOf returns the key of a text.
func KeyOf(text string) Key {
	sum := sha256.Sum256([]byte(text))
	return Key(sum[:])
}

func (k Key) String() string { return hex.EncodeToString(k[:]) }

// File is a file of vectors: a header, and rows of a key, a scale, and a vector of length 1 as int8, which takes a
// quarter of the space of float32 and ranks as well. It is only ever extended, or made anew, and mapped into memory. A
// crash does not damage it: a row counts when it is whole. The zero File has no vectors, and takes none. Its methods
// are safe for concurrent use.
type File struct {
	path  string // "" before Open
	model string

	mu     sync.RWMutex // guards the rest; held by scans
	file   *os.File     // nil: there is no vector
	mapped mmap.MMap    // the whole file
	head   header
	count  int         // of rows
	rows   map[Key]int // by their keys
}

// header is what the file begins with, in JSON, filled up with spaces to headerBytes.
type header struct {
	Version    int     `json:"version"`
	Model      string  `json:"model"`
	Dimensions int     `json:"dimensions"`
	Floor      float64 `json:"floor"` // the cosine of texts that have nothing in common
}

const (
	version       = 4 // of what the file contains
	headerBytes   = 4096
	maxDimensions = 1 << 16
)

const (
	scaleBytes = 4
	alignment  = 4 // of rows, for their scales
)

// rowAt returns where a row is in the file.
func (h header) rowAt(n int) int {
	bytes := len(Key{}) + scaleBytes + h.Dimensions
	return headerBytes + n*((bytes+alignment-1)/alignment*alignment)
}

// Open opens the file at path, if there is one of that model. Another one is removed when
// there are vectors to write.
func (v *File) Open(path, model string) {
	v.path, v.model = path, model
	if v.load() != nil {
		v.reset()
	}
}

// ModelOf returns the model of the vectors in the file at path, "" if there are none.
func ModelOf(path string) string {
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	head := make([]byte, headerBytes)
	var h header
	if _, err := file.ReadAt(head, 0); err != nil || json.Unmarshal(head, &h) != nil || h.Version != version {
		return ""
	}
	return h.Model
}

// Move moves the file to path, where it replaces another one.
func (v *File) Move(path string) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	var err error
	if v.file == nil { // there is none
		err = os.RemoveAll(path)
	} else {
		err = os.Rename(v.path, path)
	}
	if err == nil {
		v.path = path
	}
	return err
}

// load opens and maps the file.
func (v *File) load() (err error) {
	v.file, err = os.OpenFile(v.path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	head := make([]byte, headerBytes)
	if _, err := v.file.ReadAt(head, 0); err != nil {
		return err
	}
	if err := json.Unmarshal(head, &v.head); err != nil {
		return err
	}
	if v.head.Version != version || v.head.Model != v.model {
		return errors.New("the vectors are of another model")
	}
	if d := v.head.Dimensions; d < 1 || d > maxDimensions || v.head.Floor < 0 || v.head.Floor >= 1 {
		return errors.New("the header of the vectors is damaged")
	}
	v.rows = map[Key]int{}
	return v.mapFile()
}

// mapFile maps the file, which has new rows, and reads their keys.
func (v *File) mapFile() error {
	info, err := v.file.Stat()
	if err != nil {
		return err
	}
	v.unmap()
	n := (int(info.Size()) - headerBytes) / (v.head.rowAt(1) - headerBytes)
	v.mapped, err = mmap.MapRegion(v.file, v.head.rowAt(n), mmap.RDONLY, 0, 0)
	if err != nil {
		return fmt.Errorf("map vectors: %w", err)
	}
	for ; v.count < n; v.count++ {
		v.rows[v.key(v.count)] = v.count
	}
	return nil
}

func (v *File) unmap() {
	if v.mapped != nil {
		_ = v.mapped.Unmap() // what is mapped was read only
		v.mapped = nil
	}
}

// reset forgets all vectors.
func (v *File) reset() {
	v.unmap()
	if v.file != nil {
		_ = v.file.Close()
	}
	v.file, v.count, v.rows, v.head = nil, 0, nil, header{}
}

// Close closes the file.
func (v *File) Close() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.reset()
}

// Ready reports whether there are vectors of a number of dimensions.
func (v *File) Ready(dimensions int) bool {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.file != nil && v.head.Dimensions == dimensions
}

// Has reports whether a text has a vector.
func (v *File) Has(key Key) bool {
	v.mu.RLock()
	defer v.mu.RUnlock()
	_, ok := v.rows[key]
	return ok
}

// Add appends vectors of length 1. If they have other dimensions than those before, these
// go, and the file is made anew with this floor.
func (v *File) Add(keys []Key, all [][]float32, floor float64) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if dimensions := len(all[0]); v.file == nil || v.head.Dimensions != dimensions {
		if err := v.create(header{version, v.model, dimensions, floor}); err != nil {
			return err
		}
	}
	return v.append(keys, all)
}

func (v *File) append(keys []Key, all [][]float32) error {
	size := v.head.rowAt(1) - v.head.rowAt(0)
	b := make([]byte, 0, size*len(keys))
	for i, key := range keys {
		row := make([]byte, size)
		copy(row, key[:])
		scale := quantize(row[len(key)+scaleBytes:], all[i])
		binary.NativeEndian.PutUint32(row[len(key):], math.Float32bits(scale))
		b = append(b, row...)
	}
	return v.write(b)
}

// write appends whole rows.
func (v *File) write(b []byte) error {
	if _, err := v.file.WriteAt(b, int64(v.head.rowAt(v.count))); err != nil {
		return err
	}
	return v.mapFile()
}

// create makes the file anew, without rows.
func (v *File) create(h header) error {
	v.reset()
	data, err := json.Marshal(h)
	if err != nil {
		return err
	}
	if err := os.WriteFile(v.path, fmt.Appendf(nil, "%-*s", headerBytes, data), 0o600); err != nil {
		return err
	}
	if err := v.load(); err != nil {
		v.reset()
		return err
	}
	return nil
}

// Prune makes the file anew if most of its rows are of texts that are gone.
func (v *File) Prune(live map[Key]int) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	var keys []Key
	for key := range v.rows {
		if _, ok := live[key]; ok {
			keys = append(keys, key)
		}
	}
	if len(keys) > len(v.rows)/2 || len(keys) == 0 {
		return nil
	}
	var kept []byte
	for _, key := range keys {
		n := v.rows[key]
		kept = append(kept, v.mapped[v.head.rowAt(n):v.head.rowAt(n+1)]...)
	}
	if err := v.create(v.head); err != nil {
		return err
	}
	return v.write(kept)
}

func (v *File) key(row int) Key { return Key(v.mapped[v.head.rowAt(row):]) }

// row returns the vector of a row, in mapped memory, and its scale.
func (v *File) row(n int) ([]int8, float32) {
	at := v.head.rowAt(n) + len(Key{})
	scale := math.Float32frombits(binary.NativeEndian.Uint32(v.mapped[at:]))
	numbers := v.mapped[at+scaleBytes:]
	return unsafe.Slice((*int8)(unsafe.Pointer(&numbers[0])), v.head.Dimensions), scale
}

// cosine returns the cosine of a row and a query.
func (v *File) cosine(n int, q asked) float32 {
	row, scale := v.row(n)
	return float32(product(row, q.numbers)) * scale * q.scale
}

// asked is a query as whole numbers, which are multiplied faster with those of a row.
type asked struct {
	numbers []int32
	scale   float32
}

// queryRange is what the largest number of a query becomes. The sum of products with int8 fits
// into 64 bits, whatever the dimensions.
const queryRange = 1 << 15

func ask(query []float32) asked {
	largest := float32(0)
	for _, f := range query {
		largest = max(largest, f, -f)
	}
	q := asked{make([]int32, len(query)), largest / queryRange}
	for i, f := range query {
		if largest > 0 {
			q.numbers[i] = int32(math.Round(float64(f / largest * queryRange)))
		}
	}
	return q
}

// quantize writes a vector as int8, and returns its scale.
func quantize(row []byte, vector []float32) float32 {
	largest := float32(0)
	for _, f := range vector {
		largest = max(largest, f, -f)
	}
	for i, f := range vector {
		if largest > 0 {
			row[i] = byte(int8(math.Round(float64(f / largest * math.MaxInt8))))
		}
	}
	return largest / math.MaxInt8
}

// product returns the sum of the products of numbers. Four sums do not wait for each other.
func product(row []int8, query []int32) int64 {
	var s0, s1, s2, s3 int64
	query = query[:len(row)]
	i := 0
	for ; i+4 <= len(row); i += 4 {
		r, q := row[i:i+4:i+4], query[i:i+4:i+4]
		s0 += int64(r[0]) * int64(q[0])
		s1 += int64(r[1]) * int64(q[1])
		s2 += int64(r[2]) * int64(q[2])
		s3 += int64(r[3]) * int64(q[3])
	}
	for ; i < len(row); i++ {
		s0 += int64(row[i]) * int64(query[i])
	}
	return s0 + s1 + s2 + s3
}

// similarity makes a similarity of a cosine: 0 for texts that have nothing in common, and 1
// for the same text, whose cosine can be a little over 1 because its row is rounded. A cosine
// that is no number, of a damaged row, is 0.
func (v *File) similarity(cosine float32) float64 {
	if math.IsNaN(float64(cosine)) {
		return 0
	}
	return min(max(0, (float64(cosine)-v.head.Floor)/(1-v.head.Floor)), 1)
}

// Of returns the similarity of a text.
func (v *File) Of(key Key, query []float32) float64 {
	v.mu.RLock()
	defer v.mu.RUnlock()
	row, ok := v.rows[key]
	if !ok || v.head.Dimensions != len(query) {
		return 0
	}
	return v.similarity(v.cosine(row, ask(query)))
}

// Nearest returns the similarities of the k texts that are most similar to a query.
func (v *File) Nearest(query []float32, k int) map[Key]float64 {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if v.file == nil || v.head.Dimensions != len(query) {
		return nil
	}
	type near struct {
		row    int
		cosine float32
	}
	q := ask(query)
	best := make([]near, 0, 2*k)
	least := float32(v.head.Floor)
	trim := func() {
		slices.SortFunc(best, func(a, b near) int { return cmp.Compare(b.cosine, a.cosine) })
		if len(best) > k {
			best = best[:k]
			least = best[k-1].cosine
		}
	}
	for row := range v.count {
		if c := v.cosine(row, q); c > least {
			best = append(best, near{row, c})
			if len(best) == cap(best) {
				trim()
			}
		}
	}
	trim()
	found := make(map[Key]float64, len(best))
	for _, n := range best {
		found[v.key(n.row)] = v.similarity(n.cosine)
	}
	return found
}

// Dot returns the product of two vectors of the same length.
func Dot(a, b []float32) float32 {
	var s0, s1, s2, s3 float32
	b = b[:len(a)]
	i := 0
	for ; i+4 <= len(a); i += 4 {
		s0 += a[i] * b[i]
		s1 += a[i+1] * b[i+1]
		s2 += a[i+2] * b[i+2]
		s3 += a[i+3] * b[i+3]
	}
	for ; i < len(a); i++ {
		s0 += a[i] * b[i]
	}
	return s0 + s1 + s2 + s3
}

// Unit returns v with length 1.
func Unit(v []float32) []float32 {
	sum := 0.0
	for _, f := range v {
		sum += float64(f) * float64(f)
	}
	out := make([]float32, len(v))
	if length := math.Sqrt(sum); length > 0 {
		for i, f := range v {
			out[i] = float32(float64(f) / length)
		}
	}
	return out
}

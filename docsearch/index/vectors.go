package index

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"sync"
	"unsafe"

	mmap "github.com/blevesearch/mmap-go"
)

// vectors is a file of the vectors of one folder's texts: a header, and rows of a key, the
// hash of a text, and a vector of length 1. It is only ever extended, or made anew, and
// mapped into memory. It is not damaged by a crash: a row counts when it is whole.
type vectors struct {
	path  string // "" without an Embedder
	model string

	mu      sync.RWMutex // guards the rest; held by scans
	file    *os.File     // nil: there is no vector
	mapped  mmap.MMap    // the whole file
	head    header
	keys    []hash // of the rows
	rows    map[hash]int
	without int // passages that had no vector when EmbedMissing looked
}

// header is what the file begins with, in JSON, filled up with spaces to headerBytes.
type header struct {
	Version    int     `json:"version"`
	Model      string  `json:"model"`
	Dimensions int     `json:"dimensions"`
	Floor      float64 `json:"floor"` // the cosine of texts that have nothing in common
}

const headerBytes = 4096

func (h header) rowBytes() int { return len(hash{}) + 4*h.Dimensions }

// open opens the file, if there is one of the Embedder's model. Another one is removed
// when there are vectors to write.
func (v *vectors) open(path string, e Embedder) {
	if e == nil {
		return
	}
	v.path, v.model, v.without = path, e.Model(), -1
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return
	}
	head := make([]byte, headerBytes)
	if _, err := file.ReadAt(head, 0); err != nil || json.Unmarshal(head, &v.head) != nil ||
		v.head.Version != version || v.head.Model != v.model || v.head.Dimensions < 1 {
		_ = file.Close()
		return
	}
	v.file = file
	if err := v.mapFile(); err != nil {
		v.reset()
	}
}

// mapFile maps the file and reads the keys of its rows.
func (v *vectors) mapFile() error {
	info, err := v.file.Stat()
	if err != nil {
		return err
	}
	v.unmap()
	n := (int(info.Size()) - headerBytes) / v.head.rowBytes()
	if v.mapped, err = mmap.MapRegion(v.file, headerBytes+n*v.head.rowBytes(), mmap.RDONLY, 0, 0); err != nil {
		return fmt.Errorf("map vectors: %w", err)
	}
	v.keys = slices.Grow(v.keys, n-len(v.keys))
	if v.rows == nil {
		v.rows = make(map[hash]int, n)
	}
	for row := len(v.keys); row < n; row++ {
		at := headerBytes + row*v.head.rowBytes()
		key := hash(v.mapped[at:])
		v.keys = append(v.keys, key)
		v.rows[key] = row
	}
	return nil
}

func (v *vectors) unmap() {
	if v.mapped != nil {
		_ = v.mapped.Unmap() // what is mapped was read only
		v.mapped = nil
	}
}

// reset forgets all vectors.
func (v *vectors) reset() {
	v.unmap()
	if v.file != nil {
		_ = v.file.Close()
	}
	v.file, v.keys, v.rows, v.head = nil, nil, nil, header{}
}

func (v *vectors) close() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.reset()
}

// ready reports whether there are vectors of a number of dimensions, any if it is 0.
func (v *vectors) ready(dimensions int) bool {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.file != nil && (dimensions == 0 || v.head.Dimensions == dimensions)
}

// missing returns how many passages had no vector when that was last looked at.
func (v *vectors) missing() int {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if v.without < 0 {
		return math.MaxInt
	}
	return v.without
}

func (v *vectors) setMissing(n int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.without = n
}

func (v *vectors) has(key hash) bool {
	v.mu.RLock()
	defer v.mu.RUnlock()
	_, ok := v.rows[key]
	return ok
}

// add appends vectors. If they have other dimensions than those before, these go, and the
// file is made anew with this floor.
func (v *vectors) add(keys []hash, all [][]float32, floor float64) error {
	if dimensions := len(all[0]); !v.ready(dimensions) {
		if err := v.create(header{version, v.model, dimensions, floor}); err != nil {
			return err
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.file == nil {
		return ErrClosed
	}
	var b []byte
	for i, key := range keys {
		b = append(b, key[:]...)
		b = append(b, bytesOf(unit(all[i]))...)
	}
	if _, err := v.file.WriteAt(b, int64(headerBytes+len(v.keys)*v.head.rowBytes())); err != nil {
		return err
	}
	return v.mapFile()
}

// create makes an empty file.
func (v *vectors) create(h header) error {
	data, err := json.Marshal(h)
	if err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.reset()
	file, err := os.OpenFile(v.path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	v.file, v.head = file, h
	_, err = file.Write(append(data, bytes.Repeat([]byte(" "), headerBytes-len(data))...))
	return err
}

// prune makes the file anew if most of its rows are of texts that are gone.
func (v *vectors) prune(live func(hash) bool) error {
	v.mu.RLock()
	var keys []hash
	var all [][]float32
	for row, key := range v.keys {
		if live(key) {
			keys, all = append(keys, key), append(all, v.row(row))
		}
	}
	head := v.head
	if len(keys) > len(v.keys)/2 || len(keys) == 0 {
		v.mu.RUnlock()
		return nil
	}
	for i := range all {
		all[i] = slices.Clone(all[i])
	}
	v.mu.RUnlock()
	if err := v.create(head); err != nil {
		return err
	}
	return v.add(keys, all, head.Floor)
}

// row returns the vector of a row, in mapped memory.
func (v *vectors) row(n int) []float32 {
	at := headerBytes + n*v.head.rowBytes() + len(hash{})
	return unsafe.Slice((*float32)(unsafe.Pointer(&v.mapped[at])), v.head.Dimensions)
}

// similarity makes a similarity of a cosine: 0 for texts that have nothing in common, and 1
// for the same text.
func (v *vectors) similarity(cosine float32) float64 {
	return max(0, (float64(cosine)-v.head.Floor)/(1-v.head.Floor))
}

// of returns the similarity of a text.
func (v *vectors) of(key hash, query []float32) float64 {
	v.mu.RLock()
	defer v.mu.RUnlock()
	row, ok := v.rows[key]
	if !ok || v.head.Dimensions != len(query) {
		return 0
	}
	return v.similarity(dot(v.row(row), query))
}

// nearest returns the similarities of the k texts that are most similar to a query.
func (v *vectors) nearest(query []float32, k int) map[hash]float64 {
	v.mu.RLock()
	defer v.mu.RUnlock()
	if v.file == nil || v.head.Dimensions != len(query) {
		return nil
	}
	type near struct {
		row    int
		cosine float32
	}
	best := make([]near, 0, 2*k)
	least := float32(v.head.Floor)
	trim := func() {
		slices.SortFunc(best, func(a, b near) int { return cmp.Compare(b.cosine, a.cosine) })
		if len(best) > k {
			best = best[:k]
			least = best[k-1].cosine
		}
	}
	for row := range v.keys {
		if c := dot(v.row(row), query); c > least {
			if best = append(best, near{row, c}); len(best) == cap(best) {
				trim()
			}
		}
	}
	trim()
	found := make(map[hash]float64, len(best))
	for _, n := range best {
		found[v.keys[n.row]] = v.similarity(n.cosine)
	}
	return found
}

// dot returns the product of two vectors of the same length.
func dot(a, b []float32) float32 {
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

// unit returns v with length 1.
func unit(v []float32) []float32 {
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

func bytesOf(v []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(&v[0])), 4*len(v))
}

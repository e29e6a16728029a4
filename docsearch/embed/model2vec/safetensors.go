package model2vec

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
)

const (
	maxFile       = 2 << 30 // bytes, so that the product of two sizes inside does not overflow
	maxHeader     = 1 << 20
	lengthBytes   = 8 // of the length of the header
	maxDimensions = 4096
	maxRows       = 4 << 20
	maxNumber     = 1 << 30 // so that the sum of a text is a number, too
)

// table is the vectors of tokens: rows of int8, each with a scale. It takes a quarter of the
// memory of the file.
type table struct {
	dimensions int
	rows       []int8
	scales     []float32 // of the rows
	mapping    []int32   // from tokens to rows; nil: they are the same
	weights    []float32 // of the tokens; nil: all are 1
}

// tokens returns how many tokens have vectors.
func (t *table) tokens() int {
	if t.mapping != nil {
		return len(t.mapping)
	}
	return len(t.scales)
}

// bytes returns how much memory the table takes.
func (t *table) bytes() int64 {
	const number = 4
	return int64(len(t.rows)) + number*int64(len(t.scales)+len(t.mapping)+len(t.weights))
}

// add adds the vector of a token.
func (t *table) add(sum []float32, token int) {
	row := token
	if t.mapping != nil {
		row = int(t.mapping[token])
	}
	scale := t.scales[row]
	if t.weights != nil {
		scale *= t.weights[token]
	}
	numbers := t.rows[row*len(sum):]
	numbers = numbers[:len(sum)]
	for i := range sum {
		sum[i] += scale * float32(numbers[i])
	}
}

// tensor is an entry of the header of a safetensors file.
type tensor struct {
	Type    string   `json:"dtype"`
	Shape   []int64  `json:"shape"`
	Offsets [2]int64 `json:"data_offsets"` // from the end of the header on
}

// typeBytes are the types of numbers that are read.
var typeBytes = map[string]int64{"F16": 2, "F32": 4, "F64": 8, "I32": 4, "I64": 8}

// readTable reads a safetensors file with the tensor embeddings, and perhaps weights and
// mapping. Other tensors are left out.
func readTable(file io.ReaderAt, size int64) (*table, error) {
	tensors, start, err := readHeader(file, size)
	if err != nil {
		return nil, err
	}
	embeddings, err := find(tensors, "embeddings", 2, "F16", "F32")
	if err != nil {
		return nil, err
	}
	if embeddings == nil {
		return nil, errors.New("it has no tensor embeddings")
	}
	rows, dimensions := embeddings.Shape[0], embeddings.Shape[1]
	if rows < 1 || rows > maxRows || dimensions < 1 || dimensions > maxDimensions {
		return nil, fmt.Errorf("embeddings has the shape %v; %d × %d are allowed", embeddings.Shape, maxRows,
			maxDimensions)
	}
	t := &table{dimensions: int(dimensions), rows: make([]int8, rows*dimensions), scales: make([]float32, rows)}
	vector := make([]float64, dimensions)
	numbers := embeddings.numbers(file, start)
	for row := range t.scales {
		for i := range vector {
			vector[i], err = numbers()
			if err != nil {
				return nil, fmt.Errorf("embeddings, row %d: %w", row, err)
			}
		}
		t.scales[row] = quantize(t.rows[row*t.dimensions:(row+1)*t.dimensions], vector)
	}
	if err := t.readMapping(file, start, tensors); err != nil {
		return nil, err
	}
	return t, t.readWeights(file, start, tensors)
}

// readHeader returns the tensors of a file, all inside it, and where their numbers begin.
func readHeader(file io.ReaderAt, size int64) (tensors map[string]*tensor, start int64, err error) {
	if size > maxFile {
		return nil, 0, fmt.Errorf("it has %d bytes; %d are allowed", size, maxFile)
	}
	var head [lengthBytes]byte
	if _, err := file.ReadAt(head[:], 0); err != nil {
		return nil, 0, fmt.Errorf("it has %d bytes, too few for a safetensors file", size)
	}
	length := binary.LittleEndian.Uint64(head[:])
	if length > maxHeader || int64(length) > size-lengthBytes {
		return nil, 0, fmt.Errorf("its header has %d bytes; %d are allowed, and the file has %d",
			length, maxHeader, size)
	}
	data := make([]byte, length)
	if _, err := file.ReadAt(data, lengthBytes); err != nil {
		return nil, 0, err
	}
	var entries map[string]json.RawMessage
	if err := json.Unmarshal(data, &entries); err != nil {
		return nil, 0, fmt.Errorf("its header: %w", err)
	}
	delete(entries, "__metadata__")
	start = lengthBytes + int64(length)
	tensors = map[string]*tensor{}
	for name, entry := range entries {
		one := &tensor{}
		if err := json.Unmarshal(entry, one); err != nil {
			return nil, 0, fmt.Errorf("its tensor %.40q: %w", name, err)
		}
		if one.Offsets[0] < 0 || one.Offsets[1] < one.Offsets[0] || one.Offsets[1] > size-start {
			return nil, 0, fmt.Errorf("its tensor %.40q goes from %d to %d, and the file has %d bytes of tensors", name,
				one.Offsets[0], one.Offsets[1], size-start)
		}
		tensors[name] = one
	}
	return tensors, start, nil
}

// find returns a tensor of a type and a number of dimensions, whose shape agrees with its
// bytes; nil if there is none.
func find(tensors map[string]*tensor, name string, dimensions int, types ...string) (*tensor, error) {
	t := tensors[name]
	if t == nil {
		return nil, nil
	}
	known := false
	for _, one := range types {
		known = known || t.Type == one
	}
	if !known {
		return nil, fmt.Errorf("%s is of the type %.20q; %v are read", name, t.Type, types)
	}
	if len(t.Shape) != dimensions {
		return nil, fmt.Errorf("%s has the shape %v; one of %d numbers is read", name, t.Shape, dimensions)
	}
	have := t.Offsets[1] - t.Offsets[0]
	want := typeBytes[t.Type]
	for _, n := range t.Shape {
		if n < 1 || n > have { // so that the product does not overflow
			return nil, fmt.Errorf("%s has the shape %v, and %d bytes", name, t.Shape, have)
		}
		want *= n
		if want > have {
			break
		}
	}
	if want != have {
		return nil, fmt.Errorf("%s has the shape %v, and %d bytes", name, t.Shape, have)
	}
	return t, nil
}

// numbers returns a function that returns one number after the other.
func (t *tensor) numbers(file io.ReaderAt, start int64) func() (float64, error) {
	all := io.NewSectionReader(file, start+t.Offsets[0], t.Offsets[1]-t.Offsets[0])
	r := bufio.NewReaderSize(all, 256<<10)
	one := make([]byte, typeBytes[t.Type])
	return func() (float64, error) {
		if _, err := io.ReadFull(r, one); err != nil {
			return 0, err
		}
		f := decode(t.Type, one)
		if math.IsNaN(f) || math.Abs(f) > maxNumber {
			return 0, fmt.Errorf("a number is %v", f)
		}
		return f, nil
	}
}

func decode(kind string, b []byte) float64 {
	switch kind {
	case "F16":
		return half(binary.LittleEndian.Uint16(b))
	case "F32":
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
	case "F64":
		return math.Float64frombits(binary.LittleEndian.Uint64(b))
	case "I32":
		return float64(int32(binary.LittleEndian.Uint32(b)))
	}
	return float64(int64(binary.LittleEndian.Uint64(b)))
}

// half returns the number of IEEE 754 binary16.
func half(bits uint16) float64 {
	sign, exponent, fraction := 1.0, int(bits>>10&0x1f), float64(bits&0x3ff)/1024
	if bits>>15 == 1 {
		sign = -1
	}
	switch exponent {
	case 0:
		return sign * math.Ldexp(fraction, -14)
	case 0x1f:
		if fraction == 0 {
			return math.Inf(int(sign))
		}
		return math.NaN()
	}
	return sign * math.Ldexp(1+fraction, exponent-15)
}

// quantize writes a vector as int8, and returns its scale.
func quantize(row []int8, vector []float64) float32 {
	largest := 0.0
	for _, f := range vector {
		largest = max(largest, math.Abs(f))
	}
	if largest == 0 {
		return 0
	}
	for i, f := range vector {
		row[i] = int8(math.Round(f / largest * math.MaxInt8))
	}
	return float32(largest / math.MaxInt8)
}

// readMapping reads which row a token has, if the file says it.
func (t *table) readMapping(file io.ReaderAt, start int64, tensors map[string]*tensor) error {
	mapping, err := find(tensors, "mapping", 1, "I32", "I64")
	if err != nil || mapping == nil {
		return err
	}
	if mapping.Shape[0] > maxRows {
		return fmt.Errorf("mapping has the shape %v", mapping.Shape)
	}
	t.mapping = make([]int32, mapping.Shape[0])
	numbers := mapping.numbers(file, start)
	for token := range t.mapping {
		row, err := numbers()
		if err == nil && (row < 0 || row >= float64(len(t.scales))) {
			err = fmt.Errorf("the row %v of %d", row, len(t.scales))
		}
		if err != nil {
			return fmt.Errorf("mapping, token %d: %w", token, err)
		}
		t.mapping[token] = int32(row)
	}
	return nil
}

// readWeights reads the weights of the tokens, if the file has some.
func (t *table) readWeights(file io.ReaderAt, start int64, tensors map[string]*tensor) error {
	weights, err := find(tensors, "weights", 1, "F16", "F32", "F64")
	if err != nil || weights == nil {
		return err
	}
	if weights.Shape[0] != int64(t.tokens()) {
		return fmt.Errorf("weights has the shape %v for %d tokens", weights.Shape, t.tokens())
	}
	t.weights = make([]float32, t.tokens())
	numbers := weights.numbers(file, start)
	for token := range t.weights {
		weight, err := numbers()
		if err != nil {
			return fmt.Errorf("weights, token %d: %w", token, err)
		}
		t.weights[token] = float32(weight)
	}
	return nil
}

package static_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/docsearch/embed/static"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// small returns a file of a few words.
func small(t testing.TB) []byte {
	t.Helper()
	data, err := static.Encode(static.About{Name: "small"}, []static.Word{
		{Text: "sea", Vector: []float64{1, 0, 0}}, {Text: "read", Vector: []float64{0, 0.5, 0}},
		{Text: "file", Vector: []float64{0, 0, 0.25}}, {Text: "the", Vector: []float64{0, 0, 0}},
		{Text: "cache", Vector: []float64{0.5, 0.5, 0}}})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func model(t testing.TB, data []byte) *static.Model {
	t.Helper()
	m, err := static.Read(string(data))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// The README has the checksum of the table in the program.
func TestChecksumIsInTheREADME(t *testing.T) {
	table, err := os.ReadFile("words.model")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	if sum := fmt.Sprintf("SHA-256 of the file: `%x`", sha256.Sum256(table)); !strings.Contains(string(readme), sum) {
		t.Errorf("the README does not have %s", sum)
	}
}

func TestTextsGetTheSumOfTheirWords(t *testing.T) {
	m := model(t, small(t))
	for text, want := range map[string][]float64{
		"sea":                     {1, 0, 0},
		"The Sea, the SEA":        {2, 0, 0},
		"sea's":                   {1, 0, 0},
		"séa":                     {1, 0, 0},
		"readFile":                {0, 0.5, 0.25},
		"READFile":                {0, 0.5, 0.25},
		"read_file(7)":            {0, 0.5, 0.25},
		"seas":                    {1, 0, 0},
		"caching":                 {0.5, 0.5, 0},
		"sea qwx":                 {1, 0, 0}, // half is known
		"sea qwx zzy":             {0, 0, 0}, // under half
		"Übermut":                 {0, 0, 0},
		"海 の":                     {0, 0, 0},
		"":                        {0, 0, 0},
		"1 2 3 i = x":             {0, 0, 0},
		"\xff\xfesea\xff":         {1, 0, 0},
		strings.Repeat("sea ", 4): {4, 0, 0},
	} {
		got, err := m.Embed(t.Context(), []string{text})
		if err != nil || len(got) != 1 {
			t.Fatalf("%q: %v, %v", text, got, err)
		}
		for i := range want {
			if math.Abs(float64(got[0][i])-want[i]) > 0.01 {
				t.Errorf("%q: got %v, want %v", text, got[0], want)
				break
			}
		}
	}
}

func TestKnownIsAShareOfTheWeights(t *testing.T) {
	m := model(t, small(t))
	for text, want := range map[string][2]float64{"sea": {1, 1}, "xqz": {0, 0}, "": {0, 0}, "the xqz": {0, 0}, "sea xqz": {0.6, 0.8},
		"sea xqz zqx": {0.4, 0.6}} {
		if got := m.Known(text); got < want[0] || got > want[1] {
			t.Errorf("%q: got %.2f, want %v", text, got, want)
		}
	}
}

func TestSameWordsGiveTheSameBytes(t *testing.T) {
	if !bytes.Equal(small(t), small(t)) {
		t.Error("two files of the same words differ")
	}
	if name := model(t, small(t)).Model(); !strings.HasPrefix(name, "small-") || len(name) != len("small-")+8 {
		t.Errorf("the model is called %s", name)
	}
}

// TestDamagedFilesAreRefused changes the file of a few words in one way each.
func TestDamagedFilesAreRefused(t *testing.T) {
	good := small(t)
	length := int(binary.LittleEndian.Uint32(good[8:]))
	// header returns the file with another header.
	header := func(change func(map[string]any)) []byte {
		fields := map[string]any{}
		if err := json.Unmarshal(good[12:12+length], &fields); err != nil {
			t.Fatal(err)
		}
		change(fields)
		head, err := json.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		data := binary.LittleEndian.AppendUint32(bytes.Clone(good[:8]), uint32(len(head)))
		return append(append(data, head...), good[12+length:]...)
	}
	flipped := bytes.Clone(good)
	flipped[len(flipped)-1] ^= 1
	for name, tc := range map[string]struct {
		data []byte
		want string
	}{
		"empty":             {nil, "does not begin"},
		"another file":      {[]byte("PK\x03\x04 and more"), "does not begin"},
		"cut in the magic":  {good[:6], "does not begin"},
		"cut in the header": {good[:40], "its header has"},
		"cut in the body":   {good[:len(good)-1], "its body has"},
		"longer":            {append(bytes.Clone(good), 0), "its body has"},
		"another byte":      {flipped, "checksum"},
		"header too long":   {append(binary.LittleEndian.AppendUint32(bytes.Clone(good[:8]), 2<<20), make([]byte, 3<<20)...), "1048576 are allowed"},
		"no JSON":           {append(append(bytes.Clone(good[:12]), bytes.Repeat([]byte("x"), length)...), good[12+length:]...), "its header: "},
		"many words":        {header(func(h map[string]any) { h["words"] = 1 << 40 }), "it says"},
		"no dimensions":     {header(func(h map[string]any) { h["dimensions"] = 0 }), "it says"},
		"other dimensions":  {header(func(h map[string]any) { h["dimensions"] = 4 }), "its body has"},
		"negative":          {header(func(h map[string]any) { h["wordBytes"] = -5 }), "it says"},
		"no checksum":       {header(func(h map[string]any) { delete(h, "sha256") }), "checksum"},
	} {
		_, err := static.Read(string(tc.data))
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", name, err, tc.want)
		}
	}
}

// TestDefaultKnowsEnglish reads the model in the binary: texts that mean the same are nearer
// than others, and texts of other languages have no vector.
func TestDefaultKnowsEnglish(t *testing.T) {
	m, err := static.Default()
	if err != nil {
		t.Fatal(err)
	}
	all, err := m.Embed(t.Context(), []string{"the physician cures the sick", "a doctor treats patients",
		"the train leaves the station",
		"Das Fahrrad steht im Keller und nicht im Treppenhaus, weil dort die Feuerwehr durch muss.",
		"Le vélo se trouve dans la cave et non dans l'escalier, car les pompiers doivent pouvoir passer.",
		"La bicicleta está en el sótano y no en la escalera, porque los bomberos tienen que pasar."})
	if err != nil {
		t.Fatal(err)
	}
	same, other := cosine(all[0], all[1]), cosine(all[0], all[2])
	if same < 0.5 || other > same/2 {
		t.Errorf("the same meaning has %.2f, another %.2f", same, other)
	}
	for i, v := range all[3:] {
		if cosine(v, v) > 0 {
			t.Errorf("text %d of another language has a vector", i)
		}
	}
}

func cosine(a, b []float32) float64 {
	var ab, aa, bb float64
	for i := range a {
		ab += float64(a[i]) * float64(b[i])
		aa += float64(a[i]) * float64(a[i])
		bb += float64(b[i]) * float64(b[i])
	}
	if aa == 0 || bb == 0 {
		return 0
	}
	return ab / math.Sqrt(aa*bb)
}

func FuzzRead(f *testing.F) {
	good := small(f)
	f.Add(good)
	f.Add(good[:len(good)-1])
	f.Add([]byte("DSWORDS1\x02\x00\x00\x00{}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := static.Read(string(data))
		if err != nil {
			return
		}
		all, err := m.Embed(t.Context(), []string{"read the file", string(data)})
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range all {
			if s := cosine(v, v); math.IsNaN(s) {
				t.Errorf("a vector is %v", v)
			}
		}
	})
}

// BenchmarkEmbed makes the vectors of passages of some 220 words.
func BenchmarkEmbed(b *testing.B) {
	m, err := static.Default()
	if err != nil {
		b.Fatal(err)
	}
	data, err := os.ReadFile("README.md")
	if err != nil {
		b.Fatal(err)
	}
	text := string(data[:1400])
	for b.Loop() {
		if _, err := m.Embed(b.Context(), []string{text}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "passages/s")
}

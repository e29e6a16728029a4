package models_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-sse/mcp-sse/docsearch/models"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	small  = "../embed/model2vec/testdata/small"
	remote = "potion-base-8M"
)

// hub serves the small model in the place of another one.
type hub struct {
	cut     int               // responses that end in the middle
	changes map[string][]byte // files that it has in other form
	status  int               // of all answers; 0: as they are
	ranges  []string          // of the requests
	asked   []string          // paths
	noTags  bool
	noIf    bool // it ignores If-Range
	silent  bool // it sends a beginning and then nothing
}

func (h *hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.asked = append(h.asked, r.URL.Path)
	h.ranges = append(h.ranges, r.Header.Get("Range"))
	if h.status != 0 {
		http.Error(w, "no", h.status)
		return
	}
	name := filepath.Base(r.URL.Path)
	data, changed := h.changes[name]
	if !changed {
		var err error
		data, err = os.ReadFile(filepath.Join(small, name))
		if err != nil {
			http.NotFound(w, r)
			return
		}
	}
	sum := sha256.Sum256(data)
	if !h.noTags {
		w.Header().Set("ETag", `"`+hex.EncodeToString(sum[:])+`"`)
	}
	if h.noIf {
		r.Header.Del("If-Range")
	}
	if h.silent {
		w.Header().Set("Content-Length", "1000")
		_, _ = w.Write([]byte("beginning"))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		return
	}
	if h.cut > 0 && name == "model.safetensors" {
		h.cut--
		w = &cutter{w, len(data) / 4}
	}
	http.ServeContent(w, r, name, time.Time{}, strings.NewReader(string(data)))
}

// cutter ends a response after some bytes, without saying so.
type cutter struct {
	http.ResponseWriter
	left int
}

func (c *cutter) Write(b []byte) (int, error) {
	if len(b) > c.left {
		_, _ = c.ResponseWriter.Write(b[:c.left])
		panic(http.ErrAbortHandler)
	}
	c.left -= len(b)
	return c.ResponseWriter.Write(b)
}

func installer(t *testing.T, h *hub) *models.Installer {
	t.Helper()
	ts := httptest.NewServer(h)
	t.Cleanup(ts.Close)
	i := &models.Installer{StateDir: t.TempDir(), Source: ts.URL}
	i.WithoutPause()
	return i
}

// TestInstallUseRemove goes the way of a model.
func TestInstallUseRemove(t *testing.T) {
	h := &hub{}
	i := installer(t, h)
	last := map[string]int64{}
	i.Progress = func(file string, done, all int64) {
		if done > all || done < last[file] {
			t.Errorf("%s: %d of %d", file, done, all)
		}
		last[file] = done
	}
	if err := models.Use(i.StateDir, remote); err == nil || !strings.Contains(err.Error(), "not installed") {
		t.Errorf("use before install: %v", err)
	}
	done, err := i.Install(t.Context(), remote)
	if err != nil {
		t.Fatal(err)
	}
	if done.Compared || len(done.SHA256) != 2 || !strings.HasPrefix(done.Model, remote+"-") || len(last) != 2 {
		t.Errorf("%+v, %v", done, last)
	}
	want := "[/minishlab/potion-base-8M/resolve/main/tokenizer.json /minishlab/potion-base-8M/resolve/main/model.safetensors]"
	if fmt.Sprint(h.asked) != want {
		t.Errorf("asked for %v", h.asked)
	}
	if m := models.Made(i.StateDir, done.Model); m == nil || m.Model() != done.Model {
		t.Errorf("Made returns %v", m)
	}
	if m := models.Made(i.StateDir, "other-12345678"); m != nil {
		t.Errorf("Made returns %v for another model", m.Model())
	}
	if err := models.Use(i.StateDir, remote); err != nil {
		t.Fatal(err)
	}
	m, err := models.Open(i.StateDir, "")
	if err != nil || m.Model() != done.Model {
		t.Errorf("%v, %v", m, err)
	}
	list, err := models.List(i.StateDir)
	if err != nil || !strings.Contains(fmt.Sprint(list), "{potion-base-8M English, 30 MB installed true}") {
		t.Errorf("%v, %v", list, err)
	}
	used, err := models.Remove(i.StateDir, remote)
	if err != nil || !used {
		t.Errorf("%v, %v", used, err)
	}
	if m, err := models.Open(i.StateDir, ""); err != nil || !strings.HasPrefix(m.Model(), models.Builtin+"-") {
		t.Errorf("after its removal: %v, %v", m, err)
	}
	if _, err := models.Remove(i.StateDir, remote); err == nil {
		t.Error("it was removed twice")
	}
}

func newContext(t *testing.T) (context.Context, context.CancelFunc) {
	return context.WithCancel(t.Context())
}

func TestCutDownloadGoesOn(t *testing.T) {
	h := &hub{cut: 3}
	i := installer(t, h)
	if _, err := i.Install(t.Context(), remote); err != nil {
		t.Fatal(err)
	}
	if len(h.ranges) != 5 || h.ranges[1] != "" || h.ranges[2] == "" || h.ranges[3] == h.ranges[2] || h.ranges[4] == "" {
		t.Errorf("ranges: %q", h.ranges)
	}
}

func TestInterruptedInstallGoesOn(t *testing.T) {
	h := &hub{cut: 1}
	i := installer(t, h)
	ctx, cancel := newContext(t)
	i.Progress = func(file string, done, _ int64) {
		if file == "model.safetensors" && done > 0 {
			cancel()
		}
	}
	if _, err := i.Install(ctx, remote); err == nil {
		t.Fatal("it was not interrupted")
	}
	i.Progress = nil
	h.ranges = nil
	if _, err := i.Install(t.Context(), remote); err != nil {
		t.Fatal(err)
	}
	if len(h.ranges) != 2 || h.ranges[0] == "" || h.ranges[1] == "" {
		t.Errorf("ranges of the second call: %q", h.ranges)
	}
}

// TestChangedFileIsNotMixed changes the file between two parts of its download.
func TestChangedFileIsNotMixed(t *testing.T) {
	for name, h := range map[string]*hub{
		"with tags": {cut: 1}, "without": {cut: 1, noTags: true}, "If-Range is ignored": {cut: 1, noIf: true},
	} {
		t.Run(name, func(t *testing.T) {
			i := installer(t, h)
			ctx, cancel := newContext(t)
			i.Progress = func(file string, done, _ int64) {
				if file == "model.safetensors" && done > 0 {
					cancel()
				}
			}
			if _, err := i.Install(ctx, remote); err == nil {
				t.Fatal("it was not interrupted")
			}
			data, err := os.ReadFile(filepath.Join(small, "model.safetensors"))
			if err != nil {
				t.Fatal(err)
			}
			data[len(data)-100] ^= 1
			h.changes = map[string][]byte{"model.safetensors": data}
			i.Progress = nil
			done, err := i.Install(t.Context(), remote)
			sum := sha256.Sum256(data)
			if err != nil || done.SHA256["model.safetensors"] != hex.EncodeToString(sum[:]) {
				t.Errorf("%+v, %v", done, err)
			}
		})
	}
}

func TestOtherChecksumIsRefused(t *testing.T) {
	h := &hub{}
	i := installer(t, h)
	first, err := i.Install(t.Context(), remote)
	if err != nil {
		t.Fatal(err)
	}
	again, err := i.Install(t.Context(), remote)
	if err != nil || !again.Compared {
		t.Errorf("the same files: %+v, %v", again, err)
	}
	h.changes = map[string][]byte{"tokenizer.json": []byte(`{"model":{"type":"WordPiece","vocab":{"a":0}}}`)}
	if _, err := i.Install(t.Context(), remote); err == nil || !strings.Contains(err.Error(), "of the first download") {
		t.Errorf("got %v", err)
	}
	if m, err := models.Open(i.StateDir, remote); err != nil || m.Model() != first.Model {
		t.Errorf("the model before: %v, %v", m, err)
	}
}

func TestBadDownloadsAreRefused(t *testing.T) {
	for name, tc := range map[string]struct {
		hub  hub
		want string
	}{
		"not found":  {hub{status: 404}, "404 Not Found"},
		"forbidden":  {hub{status: 403}, "403 Forbidden"},
		"busy":       {hub{status: 503}, "goes on from here"},
		"no model":   {hub{changes: map[string][]byte{"model.safetensors": []byte("<html>")}}, "too few for a safetensors"},
		"no JSON":    {hub{changes: map[string][]byte{"tokenizer.json": []byte("<html>")}}, "no tokenizer"},
		"other size": {hub{changes: map[string][]byte{"model.safetensors": make([]byte, 100)}}, "its header: "},
	} {
		i := installer(t, &tc.hub)
		_, err := i.Install(t.Context(), remote)
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", name, err, tc.want)
		}
		list, err := models.List(i.StateDir)
		isRemote := func(e models.Entry) bool { return e.Name == remote }
		if n := slices.IndexFunc(list, isRemote); err != nil || n < 0 || list[n].State != "not installed" {
			t.Errorf("%s: %v, %v", name, list, err)
		}
	}
	for _, source := range []string{"http://192.0.2.1", "ftp://host", "https://user:pw@host", "https://host?a=b", "host"} {
		i := &models.Installer{StateDir: t.TempDir(), Source: source}
		if _, err := i.Install(t.Context(), remote); err == nil || !strings.Contains(err.Error(), "address") && !strings.Contains(err.Error(), "https") {
			t.Errorf("%s: %v", source, err)
		}
	}
	i := &models.Installer{StateDir: t.TempDir()}
	if _, err := i.Install(t.Context(), "../evil"); err == nil || !strings.Contains(err.Error(), "can be installed") {
		t.Errorf("got %v", err)
	}
}

// TestRedirectsStaySafe serves a redirect to another machine without TLS.
func TestRedirectsStaySafe(t *testing.T) {
	ts := httptest.NewServer(http.RedirectHandler("http://192.0.2.1/model", http.StatusFound))
	defer ts.Close()
	i := &models.Installer{StateDir: t.TempDir(), Source: ts.URL}
	i.WithoutPause()
	if _, err := i.Install(t.Context(), remote); err == nil || !strings.Contains(err.Error(), "redirect") {
		t.Errorf("got %v", err)
	}
}

// TestPlainHTTPStaysPlain redirects from HTTPS to a server of this machine without TLS.
func TestPlainHTTPStaysPlain(t *testing.T) {
	for address, want := range map[string][2]bool{ // from HTTPS, from HTTP
		"https://host": {true, true}, "http://localhost:80": {false, true}, "http://127.0.0.1": {false, true},
		"http://[::1]": {false, true}, "http://192.0.2.1": {}, "ftp://localhost": {},
	} {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		if got := [2]bool{models.IsSafe(u, false), models.IsSafe(u, true)}; got != want {
			t.Errorf("%s: got %v, want %v", address, got, want)
		}
	}
}

func TestSecondInstallIsRefused(t *testing.T) {
	i := installer(t, &hub{})
	second := &models.Installer{StateDir: i.StateDir, Source: i.Source}
	var refused, removed error
	i.Progress = func(string, int64, int64) {
		if refused == nil {
			_, refused = second.Install(t.Context(), remote)
			_, removed = models.Remove(i.StateDir, remote)
		}
	}
	if _, err := i.Install(t.Context(), remote); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{refused, removed} {
		if err == nil || !strings.Contains(err.Error(), "by another process") {
			t.Errorf("got %v", err)
		}
	}
	if _, err := second.Install(t.Context(), remote); err != nil {
		t.Errorf("after the first: %v", err)
	}
}

// TestCrashWhileReplacing has the folders of a process that died between the two renames.
func TestCrashWhileReplacing(t *testing.T) {
	i := installer(t, &hub{})
	first, err := i.Install(t.Context(), remote)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(i.StateDir, "models", remote)
	if err := os.Rename(dir, dir+".old.part"); err != nil {
		t.Fatal(err)
	}
	again, err := i.Install(t.Context(), remote)
	if err != nil || !again.Compared || again.Model != first.Model {
		t.Errorf("%+v, %v", again, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 3 {
		t.Errorf("%v, %v", entries, err)
	}
}

func TestSilentServerIsLeft(t *testing.T) {
	i := installer(t, &hub{silent: true})
	i.WithSilence(time.Millisecond)
	if _, err := i.Install(t.Context(), remote); err == nil || !strings.Contains(err.Error(), "sends nothing more") {
		t.Errorf("got %v", err)
	}
}

func TestDamagedChoiceIsTold(t *testing.T) {
	dir := t.TempDir()
	for content, want := range map[string]string{"../../etc\n": "names no model", "": "names no model", "gone\n": "not installed", "none\n": ""} {
		if err := os.WriteFile(filepath.Join(dir, "model"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		m, err := models.Open(dir, "")
		if want == "" && (m != nil || err != nil) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%q: got %v, %v, want %q", content, m, err, want)
		}
	}
	if m, err := models.Open(dir, small); err != nil || !strings.HasPrefix(m.Model(), "small-") {
		t.Errorf("the path of a folder: %v, %v", m, err)
	}
	if err := models.Use(dir, small); err == nil {
		t.Error("Use takes a path")
	}
}

package models_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
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
	commit  string // that it names as Hugging Face does; files of others are not found
	noIf    bool   // it ignores If-Range
	silent  bool   // it sends a beginning and then nothing
}

func (h *hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.asked = append(h.asked, r.URL.Path)
	h.ranges = append(h.ranges, r.Header.Get("Range"))
	if h.status != 0 {
		http.Error(w, "no", h.status)
		return
	}
	if h.commit != "" {
		revision := strings.Split(r.URL.Path, "/")[4]
		if revision != "main" && revision != h.commit {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("X-Repo-Commit", h.commit)
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
	if done.Compared || done.IsCommit || done.Revision != "main" || len(done.SHA256) != 2 || !strings.HasPrefix(done.Model, remote+"-") || len(last) != 2 {
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

// TestCommitIsPinned downloads a model of a branch whose commit the server names, and again when the
// branch has another one.
func TestCommitIsPinned(t *testing.T) {
	first, second := strings.Repeat("0123456789", 4), strings.Repeat("ab", 20)
	h := &hub{commit: first}
	i := installer(t, h)
	check := func(commit string, paths ...string) {
		t.Helper()
		h.asked = nil
		done, err := i.Install(t.Context(), remote)
		if err != nil || done.Revision != commit || !done.IsCommit {
			t.Errorf("%+v, %v, want the commit %s", done, err, commit)
		}
		for n, path := range paths {
			if n >= len(h.asked) || !strings.Contains(h.asked[n], "/resolve/"+path+"/") {
				t.Errorf("asked for %v, want %v", h.asked, paths)
			}
		}
	}
	check(first, "main", first)
	check(first, first, first)
	h.commit = second
	_, err := i.Install(t.Context(), remote)
	if err == nil || !strings.Contains(err.Error(), "404") || !strings.Contains(err.Error(), "forgets the commit") {
		t.Errorf("the commit is gone: %v", err)
	}
	if _, err := models.Remove(i.StateDir, remote); err != nil {
		t.Fatal(err)
	}
	check(second, "main", second)
}

// TestCommitIsNamedBeforeARedirect has the files in another place, which knows no commits.
func TestCommitIsNamedBeforeARedirect(t *testing.T) {
	h := &hub{}
	store := httptest.NewServer(h)
	defer store.Close()
	commit := strings.Repeat("c0ffee0123", 4)
	named := commit
	i := installer(t, nil)
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Repo-Commit", named)
		http.Redirect(w, r, store.URL+r.URL.Path, http.StatusFound)
	}))
	defer ts.Close()
	i.Source = ts.URL
	done, err := i.Install(t.Context(), remote)
	if err != nil || done.Revision != commit {
		t.Errorf("%+v, %v, want the commit %s", done, err, commit)
	}
	if _, err := models.Remove(i.StateDir, remote); err != nil {
		t.Fatal(err)
	}
	named = "../../other/repository/resolve/main/../../../../aa"
	done, err = i.Install(t.Context(), remote)
	if err != nil || done.IsCommit || done.Revision != "main" {
		t.Errorf("no commit is named: %+v, %v", done, err)
	}
}

// TestRemovedModelIsStillUsed removes a model that another part of the program has open.
func TestRemovedModelIsStillUsed(t *testing.T) {
	i := installer(t, &hub{})
	if _, err := i.Install(t.Context(), remote); err != nil {
		t.Fatal(err)
	}
	m, err := models.Open(i.StateDir, remote)
	if err != nil {
		t.Fatal(err)
	}
	embed := func() string {
		all, err := m.Embed(t.Context(), []string{"the government of the country"})
		if err != nil || !slices.ContainsFunc(all[0], func(f float32) bool { return f != 0 }) {
			t.Errorf("got %v, %v", all, err)
		}
		return fmt.Sprint(all)
	}
	before := embed()
	if _, err := models.Remove(i.StateDir, remote); err != nil {
		t.Fatal(err)
	}
	if after := embed(); after != before {
		t.Errorf("after its removal: %s, before: %s", after, before)
	}
	if _, err := models.Open(i.StateDir, remote); err == nil || !strings.Contains(err.Error(), "not installed") {
		t.Errorf("it is opened anew: %v", err)
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

// A checksum that the table has is compared at the first download.
func TestChecksumOfTheTable(t *testing.T) {
	first, err := installer(t, &hub{}).Install(t.Context(), remote)
	if err != nil || first.Compared {
		t.Fatalf("%+v, %v", first, err)
	}
	n := slices.IndexFunc(models.Known, func(r models.Remote) bool { return r.Name == remote })
	before := models.Known[n].SHA256
	t.Cleanup(func() { models.Known[n].SHA256 = before })
	models.Known[n].SHA256 = first.SHA256
	if again, err := installer(t, &hub{}).Install(t.Context(), remote); err != nil || !again.Compared {
		t.Errorf("%+v, %v", again, err)
	}
	other := maps.Clone(first.SHA256)
	other["model.safetensors"] = strings.Repeat("0", 64)
	models.Known[n].SHA256 = other
	if _, err := installer(t, &hub{}).Install(t.Context(), remote); err == nil || !strings.Contains(err.Error(), "of this program") {
		t.Errorf("got %v", err)
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

// TestCrashAfterEachStep ends each change of the models after each of its steps, as a killed process
// does. What was chosen can be read then, and the change, made again, leaves nothing over.
func TestCrashAfterEachStep(t *testing.T) {
	install := func(i *models.Installer) error {
		_, err := i.Install(t.Context(), remote)
		return err
	}
	use := func(i *models.Installer) error { return models.Use(i.StateDir, remote) }
	remove := func(i *models.Installer) error {
		_, err := models.Remove(i.StateDir, remote)
		return err
	}
	type change func(*models.Installer) error
	for name, tc := range map[string]struct {
		before []change
		change change
		steps  int
		kept   bool // the model can be used after each step
		left   []string
	}{
		"install":                      {nil, install, 5, false, []string{remote, remote + ".lock"}},
		"install again":                {[]change{install}, install, 5, true, []string{remote, remote + ".lock"}},
		"install again what is chosen": {[]change{install, use}, install, 5, true, []string{remote, remote + ".lock"}},
		"use":                          {[]change{install}, use, 1, true, []string{remote, remote + ".lock"}},
		"remove":                       {[]change{install}, remove, 2, false, []string{remote + ".lock"}},
		"remove what is chosen":        {[]change{install, use}, remove, 3, false, []string{remote + ".lock"}},
	} {
		for crash := 1; crash <= tc.steps+1; crash++ { // the last time it is not killed
			i := installer(t, &hub{})
			for _, f := range tc.before {
				if err := f(i); err != nil {
					t.Fatal(err)
				}
			}
			steps, killed := 0, false
			reset := models.AfterStep(func() {
				steps++
				if steps == crash {
					panic("killed")
				}
			})
			func() {
				defer func() { killed = recover() != nil }()
				_ = tc.change(i)
			}()
			reset()
			if killed != (crash <= tc.steps) {
				t.Errorf("%s has other than %d steps: killed after step %d: %t", name, tc.steps, crash, killed)
			}
			if _, err := models.Open(i.StateDir, ""); err != nil {
				t.Errorf("%s, killed after step %d: the chosen model: %v", name, crash, err)
			}
			if _, err := models.Open(i.StateDir, remote); tc.kept && err != nil {
				t.Errorf("%s, killed after step %d: %v", name, crash, err)
			}
			list, err := models.List(i.StateDir)
			isRemote := func(e models.Entry) bool { return e.Name == remote }
			if n := slices.IndexFunc(list, isRemote); err != nil || n < 0 || tc.kept && list[n].State != "installed" {
				t.Errorf("%s, killed after step %d: the list is %v, %v", name, crash, list, err)
			}
			// What was removed completely cannot be removed again.
			if err := tc.change(i); err != nil && !strings.Contains(err.Error(), "not installed") {
				t.Errorf("%s, killed after step %d: made again: %v", name, crash, err)
			}
			var left []string
			entries, err := os.ReadDir(filepath.Join(i.StateDir, "models"))
			for _, e := range entries {
				left = append(left, e.Name())
			}
			if err != nil || !slices.Equal(left, tc.left) {
				t.Errorf("%s, killed after step %d: %v, %v are left, want %v", name, crash, left, err, tc.left)
			}
		}
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

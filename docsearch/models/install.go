package models

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/mcp-sse/mcp-sse/docsearch/embed/model2vec"
)

// Remote is a model that can be downloaded.
type Remote struct {
	Name       string
	About      string
	Repository string            // below DefaultSource
	Revision   string            // a commit, or a branch while no commit is known
	SHA256     map[string]string // of its files, as far as they are known
}

// Known are the models that Install takes. Their addresses are untried: no hub could be reached
// where this was written. No commit and no checksum is known; Install records those of the first
// download.
var Known = []Remote{
	{Name: "potion-base-8M", About: "English, 30 MB", Repository: "minishlab/potion-base-8M", Revision: branch},
	{Name: "potion-multilingual-128M", About: "101 languages, 530 MB",
		Repository: "minishlab/potion-multilingual-128M", Revision: branch},
}

const branch = "main"

// DefaultSource is where models are downloaded from.
const DefaultSource = "https://huggingface.co"

// files are the files of a model, with the most bytes that they may have.
var files = []struct {
	name string
	most int64
}{
	{model2vec.TokenizerFile, 128 << 20},
	{model2vec.TensorsFile, 2 << 30},
}

// Files returns the names of the files of a model.
func Files() (names []string) {
	for _, file := range files {
		names = append(names, file.name)
	}
	return names
}

const (
	maxAttempts  = 5                // in a row that got nothing
	attemptPause = 2 * time.Second  // between two
	headTime     = 30 * time.Second // for the head of a response
	silentTime   = 60 * time.Second // for the next bytes of its body
	replaceTime  = time.Second      // for another process to replace a model, whose bytes are there
	etagMark     = ".etag"          // ends the name of the file with the ETag of a download
)

// Installer downloads models.
type Installer struct {
	StateDir string
	Source   string // "": DefaultSource; https, or http of this machine
	// Progress is called while a file is downloaded, with how many bytes of all are there; all is
	// -1 if it is not known.
	Progress func(file string, done, all int64)

	pause  time.Duration // between attempts; 0: attemptPause
	silent time.Duration // longest time without bytes; 0: silentTime
}

// Installed is what Install has done.
type Installed struct {
	Model    string            // its name with the beginning of its checksum
	SHA256   map[string]string // of its files
	Compared bool              // with checksums that were known before, of the table or of an earlier download
	Revision string            // a commit, or the branch if the server has named none
	IsCommit bool
}

// Install downloads a model of Known into the state directory. After an interruption another call
// continues the download. The model is there when all files are, agree with the checksums that are
// known, and can be read; until then one that was installed before stays. All files are of the commit
// that the server names with the first one, and a later download is of the same commit. Install fails
// if another process, or another call, installs or removes the same model.
func (i *Installer) Install(ctx context.Context, name string) (_ *Installed, err error) {
	remote, err := find(name)
	if err != nil {
		return nil, err
	}
	repository, err := i.repository(remote)
	if err != nil {
		return nil, err
	}
	unlock, err := lock(i.StateDir, name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if err := restore(folder(i.StateDir, name)); err != nil {
		return nil, err
	}
	before, err := recorded(i.StateDir, name)
	if err != nil {
		return nil, err
	}
	part := folder(i.StateDir, name) + partMark
	if err := os.MkdirAll(part, 0o700); err != nil {
		return nil, err
	}
	done := &Installed{SHA256: map[string]string{}, Revision: cmp.Or(before.Commit, remote.Revision)}
	for _, file := range files {
		address := repository + "/resolve/" + done.Revision + "/" + file.name
		commit, err := i.download(ctx, address, filepath.Join(part, file.name), file.most)
		if err != nil && before.Commit != "" && errors.Is(err, errNotFound) {
			err = fmt.Errorf("%w; docsearch model remove %s forgets the commit of the first download", err, name)
		}
		if err != nil {
			return nil, fmt.Errorf("download %s: %w", file.name, err)
		}
		if commit != "" && !isCommit(done.Revision) {
			done.Revision = commit
		}
		done.SHA256[file.name], err = checksum(filepath.Join(part, file.name))
		if err != nil {
			return nil, err
		}
	}
	done.IsCommit = isCommit(done.Revision)
	done.Compared, err = compare(remote, before, done.SHA256)
	if err == nil {
		err = readable(part)
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(part)) // else the next call would go on with it
	}
	if err := i.finish(remote, repository, part, done); err != nil {
		return nil, err
	}
	return done, nil
}

// lock takes the lock of a model, so that one process at a time installs or removes it. The system
// releases the lock when the process ends.
func lock(stateDir, name string) (unlock func() error, err error) {
	path := folder(stateDir, name) + lockMark
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	file := flock.New(path)
	free, err := file.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock the model: %w", err)
	}
	if !free {
		return nil, fmt.Errorf("the model %q is being installed or removed by another process", name)
	}
	return file.Unlock, nil // the file stays: another process may have opened it
}

// settle puts the model before back in its place if a crash has interrupted its replacement, and no
// process is just replacing it.
func settle(stateDir, name string) error {
	dir := folder(stateDir, name)
	if exists(dir) || !exists(dir+oldMark+partMark) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), replaceTime)
	defer cancel()
	file := flock.New(dir + lockMark)
	free, err := file.TryLockContext(ctx, replaceTime/100)
	if err != nil || !free {
		return fmt.Errorf("lock the model %q, whose replacement was interrupted: %w", name, err)
	}
	return errors.Join(restore(dir), file.Unlock())
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// restore puts the model before back in its place if a crash has interrupted its replacement.
func restore(dir string) error {
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err := os.Rename(dir+oldMark+partMark, dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// readable fails if the model in a folder cannot be read.
func readable(dir string) error {
	_, err := model2vec.Open(dir)
	return err
}

func find(name string) (Remote, error) {
	var names []string
	for _, known := range Known {
		if known.Name == name {
			return known, nil
		}
		names = append(names, known.Name)
	}
	return Remote{}, fmt.Errorf("no model %q can be installed; there are %s", name, strings.Join(names, " and "))
}

// repository returns the address of the repository of a model.
func (i *Installer) repository(remote Remote) (string, error) {
	source := i.Source
	if source == "" {
		source = DefaultSource
	}
	u, err := url.Parse(source)
	if err != nil || u.Host == "" || !isSafe(u, true) {
		return "", errors.New("models come from an address that begins with https:// and has a host")
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", errors.New("the address of models must have no password, query or fragment")
	}
	return strings.TrimSuffix(source, "/") + "/" + remote.Repository, nil
}

// isSafe reports whether nobody on the way can change the answers of an address. HTTP without TLS is
// safe to this machine alone, and only allowed if plain is set.
func isSafe(u *url.URL, plain bool) bool {
	ip := net.ParseIP(u.Hostname())
	isLocal := u.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
	return u.Scheme == "https" || plain && u.Scheme == "http" && isLocal
}

// recorded returns what an earlier download has recorded of a model; nothing if there was none.
func recorded(stateDir, name string) (about, error) {
	before, err := readAbout(stateDir, name)
	if errors.Is(err, fs.ErrNotExist) {
		return about{}, nil
	}
	if err == nil && before.Commit != "" && !isCommit(before.Commit) {
		err = fmt.Errorf("%.50q is no commit", before.Commit)
	}
	if err != nil {
		return about{}, fmt.Errorf("the record of the first download: %w; docsearch model remove %s forgets it", err,
			name)
	}
	return before, nil
}

// compare compares checksums with those of the table, or of an earlier download. It returns true if
// those of all files are known.
func compare(remote Remote, before about, sums map[string]string) (compared bool, err error) {
	known := remote.SHA256
	origin := "of this program"
	if len(known) == 0 {
		known, origin = before.SHA256, "of the first download"
	}
	compared = true
	for _, file := range files {
		want := known[file.name]
		compared = compared && want != ""
		if want != "" && want != sums[file.name] {
			return false, fmt.Errorf("%s has the checksum %s, and that %s is %s; docsearch model remove %s forgets it",
				file.name, sums[file.name], origin, want, remote.Name)
		}
	}
	return compared, nil
}

// finish puts the downloaded folder, which is complete then, in its place. A crash after any step
// leaves the model before or this one: restore knows the only step after which neither is in place.
func (i *Installer) finish(remote Remote, repository, part string, done *Installed) error {
	dir := folder(i.StateDir, remote.Name)
	m, err := model2vec.Open(part)
	if err != nil {
		return err
	}
	done.Model = remote.Name + strings.TrimPrefix(m.Model(), filepath.Base(part))
	record := about{Model: done.Model, Source: repository, SHA256: done.SHA256}
	if done.IsCommit {
		record.Commit = done.Revision
	}
	data, err := json.MarshalIndent(record, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(part, aboutFile), append(data, '\n'), 0o600); err != nil {
		return err
	}
	afterStep()
	old := dir + oldMark + partMark
	if err := os.RemoveAll(old); err != nil {
		return err
	}
	afterStep()
	if err := os.Rename(dir, old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	afterStep()
	if err := os.Rename(part, dir); err != nil {
		return errors.Join(err, restore(dir))
	}
	afterStep()
	for _, file := range files {
		_ = os.Remove(filepath.Join(dir, file.name+etagMark)) // it is of no use any more
	}
	afterStep()
	return os.RemoveAll(old)
}

// afterStep is called after each step on the disk that a crash may come between. Tests set it.
var afterStep = func() {}

func checksum(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// errRefused is an answer that another attempt would not change.
var errRefused = errors.New("refused")

// errNotFound is the answer of a server that has no such file, or no such commit.
var errNotFound = fmt.Errorf("%w: the answer is 404 Not Found", errRefused)

// errSilent is an answer that stops in the middle, while its connection stays open.
var errSilent = errors.New("the server sends nothing more")

// errOtherFile is a partial answer that does not continue the bytes that are there.
var errOtherFile = errors.New("the answer is a part of another version of the file")

// commitHeader names the commit of a file, in answers of Hugging Face.
const commitHeader = "X-Repo-Commit"

var commitForm = regexp.MustCompile(`^[0-9a-f]{40}$`)

func isCommit(revision string) bool { return commitForm.MatchString(revision) }

// commitOf returns the commit that the first answer to a request names; "" if it names none. The
// answers after a redirect are of a store that knows no commits.
func commitOf(resp *http.Response) string {
	for resp.Request.Response != nil {
		resp = resp.Request.Response
	}
	commit := resp.Header.Get(commitHeader)
	if !isCommit(commit) {
		return ""
	}
	return commit
}

// download gets a file, or the rest of it if its beginning is there, and returns its commit, "" if
// the server names none. It tries again as long as attempts bring bytes.
func (i *Installer) download(ctx context.Context, address, path string, most int64) (string, error) {
	wait := i.pause
	if wait == 0 {
		wait = attemptPause
	}
	for failures := 0; ; failures++ {
		before := size(path)
		commit, err := i.attempt(ctx, address, path, most)
		if err == nil || errors.Is(err, errRefused) || ctx.Err() != nil {
			return commit, errors.Join(err, ctx.Err())
		}
		if size(path) > before {
			failures = 0
		}
		if failures+1 >= maxAttempts {
			return "", fmt.Errorf("%w; the same command goes on from here", err)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

func size(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// attempt makes one request for what is missing of a file, and returns the commit that the answer
// names.
func (i *Installer) attempt(ctx context.Context, address, path string, most int64) (commit string, err error) {
	have := size(path)
	etag, _ := os.ReadFile(path + etagMark)
	if len(etag) == 0 {
		have = 0 // nothing tells whether the file is still the same
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return "", err
	}
	if have > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", have))
		req.Header.Set("If-Range", string(etag))
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ResponseHeaderTimeout = headTime
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if len(via) >= 10 || !isSafe(r.URL, via[0].URL.Scheme == "http") {
			return fmt.Errorf("%w: a redirect that is not followed", errRefused)
		}
		return nil
	}}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	commit = commitOf(resp)
	switch {
	case resp.StatusCode == http.StatusOK:
		have = 0
	case resp.StatusCode == http.StatusPartialContent && have > 0:
		if strongTag(resp) != string(etag) || !continues(resp, have) {
			// The server ignores If-Range. The next attempt begins at 0.
			return "", errors.Join(errOtherFile, os.Remove(path+etagMark))
		}
	case resp.StatusCode == http.StatusRequestedRangeNotSatisfiable && have > 0 &&
		resp.Header.Get("Content-Range") == fmt.Sprintf("bytes */%d", have):
		return commit, nil // all is there
	case resp.StatusCode == http.StatusNotFound:
		return "", errNotFound
	case resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests:
		return "", fmt.Errorf("the answer is %d", resp.StatusCode)
	default:
		return "", fmt.Errorf("%w: the answer is %d %s", errRefused, resp.StatusCode, http.StatusText(resp.StatusCode))
	}
	all := int64(-1)
	if resp.ContentLength >= 0 {
		all = have + resp.ContentLength
	}
	if all > most {
		return "", fmt.Errorf("%w: the file has %d bytes; %d are allowed", errRefused, all, most)
	}
	if have == 0 {
		if err := begin(path, strongTag(resp)); err != nil {
			return "", err
		}
	}
	silent := cmp.Or(i.silent, silentTime)
	timer := time.AfterFunc(silent, func() { cancel(errSilent) })
	defer timer.Stop()
	err = i.save(resp.Body, path, have, all, most, func() { timer.Reset(silent) })
	if err != nil && errors.Is(context.Cause(ctx), errSilent) {
		return "", errSilent
	}
	return commit, err
}

// begin empties a file and then notes the ETag of the version that is downloaded. The order matters
// to a crash between the two: the bytes of one version never have the ETag of another.
func begin(path, etag string) error {
	if err := os.Truncate(path, 0); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.WriteFile(path+etagMark, []byte(etag), 0o600)
}

// continues reports whether a partial response begins at the byte have and goes up to the end of the
// file, whose size agrees with the length of the body.
func continues(resp *http.Response, have int64) bool {
	all := have + resp.ContentLength
	return resp.ContentLength > 0 &&
		resp.Header.Get("Content-Range") == fmt.Sprintf("bytes %d-%d/%d", have, all-1, all)
}

// strongTag returns the ETag of a response if it tells each version of the file apart.
func strongTag(resp *http.Response) string {
	tag := resp.Header.Get("ETag")
	if strings.HasPrefix(tag, "W/") {
		return ""
	}
	return tag
}

// save appends a body to the bytes of a file that are there. It calls alive when bytes arrive.
func (i *Installer) save(body io.Reader, path string, have, all, most int64, alive func()) (err error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if err := file.Truncate(have); err != nil {
		return err
	}
	if _, err := file.Seek(have, io.SeekStart); err != nil {
		return err
	}
	buffer := make([]byte, 128<<10)
	for {
		n, err := body.Read(buffer)
		if n > 0 {
			alive()
		}
		if have+int64(n) > most {
			return fmt.Errorf("%w: the file has more than %d bytes", errRefused, most)
		}
		if _, wrong := file.Write(buffer[:n]); wrong != nil {
			return wrong
		}
		have += int64(n)
		if i.Progress != nil {
			i.Progress(filepath.Base(path), have, all)
		}
		switch {
		case errors.Is(err, io.EOF) && (all < 0 || have == all):
			return file.Sync() // its place in the state directory must not outlive its bytes
		case errors.Is(err, io.EOF):
			return io.ErrUnexpectedEOF
		case err != nil:
			return err
		}
	}
}

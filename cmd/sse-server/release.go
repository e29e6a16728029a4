package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/exit"
	"github.com/mcp-sse/mcp-sse/cmd/sse-server/internal/plaintext"
)

// newestRelease is where GitHub says which release of the project is the newest. Nothing else asks there, and only
// version --check does.
const newestRelease = "https://api.github.com/repos/mcp-sse/mcp-sse/releases/latest"

const (
	releaseTime = 10 * time.Second // for the question
	maxRelease  = 1 << 20          // bytes of the answer
)

// release is what GitHub says of one.
type release struct {
	Tag  string `json:"tag_name"`
	Page string `json:"html_url"`
}

// tellNewer says whether there is a newer release than this version, and returns the exit code: 1 if that is not known.
func (m *Main) tellNewer(version, at string) int {
	newest, err := askRelease(at)
	switch {
	case err != nil:
		fmt.Fprintf(m.Stderr, "sse-server: whether there is a newer one is not known: %s\n",
			plaintext.Visible(err.Error()))
		return exit.Failure
	case newest.Tag == "":
		fmt.Fprintln(m.Stdout, "no release has been published yet")
	case numbersOf(version) == nil:
		fmt.Fprintf(m.Stdout, "newest release %s, and this one was built from the source: %s\n",
			plaintext.Visible(newest.Tag), plaintext.Visible(newest.Page))
	case isNewer(newest.Tag, version):
		fmt.Fprintf(m.Stdout, "newer release %s: %s\n", plaintext.Visible(newest.Tag), plaintext.Visible(newest.Page))
	default:
		fmt.Fprintln(m.Stdout, "there is no newer release")
	}
	return exit.OK
}

// askRelease asks for the newest release. Its tag is empty if there is none.
func askRelease(at string) (newest release, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), releaseTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return newest, err
	}
	r.Header.Set("Accept", "application/vnd.github+json")
	client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true}}
	answer, err := client.Do(r)
	if err != nil {
		return newest, err
	}
	defer answer.Body.Close()
	switch answer.StatusCode {
	case http.StatusNotFound:
		return newest, nil
	case http.StatusOK:
	default:
		return newest, fmt.Errorf("%s answers %s", r.URL.Host, answer.Status)
	}
	if err := json.NewDecoder(io.LimitReader(answer.Body, maxRelease)).Decode(&newest); err != nil {
		return newest, fmt.Errorf("the answer of %s: %w", r.URL.Host, err)
	}
	if numbersOf(newest.Tag) == nil {
		return newest, fmt.Errorf("the answer of %s has no version: %.64q", r.URL.Host, newest.Tag)
	}
	return newest, nil
}

// isNewer reports whether a version comes after another one. Versions before a release, such as v1.2.0-rc.1, come
// before it.
func isNewer(version, other string) bool {
	is, was := numbersOf(version), numbersOf(other)
	for i := range is {
		if is[i] != was[i] {
			return is[i] > was[i]
		}
	}
	return strings.Contains(other, "-") && !strings.Contains(version, "-")
}

// numbersOf returns the three numbers of a version such as v1.2.3; nil if it has others.
func numbersOf(version string) (numbers []int) {
	version, isVersion := strings.CutPrefix(version, "v")
	version, _, _ = strings.Cut(version, "+")
	version, _, _ = strings.Cut(version, "-")
	for part := range strings.SplitSeq(version, ".") {
		number, err := strconv.Atoi(part)
		if err != nil || number < 0 {
			return nil
		}
		numbers = append(numbers, number)
	}
	if !isVersion || len(numbers) != 3 {
		return nil
	}
	return numbers
}

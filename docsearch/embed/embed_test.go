package embed_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	"github.com/mcp-sse/mcp-sse/docsearch/embed"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const key = "sk-secret-key"

// transport answers requests without a network.
type transport func(r *http.Request) (status int, header http.Header, body string, err error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) {
	status, header, body, err := f(r)
	if err != nil {
		return nil, err
	}
	if header == nil {
		header = http.Header{}
	}
	return &http.Response{StatusCode: status, Status: fmt.Sprint(status, " bad ", key), Header: header,
		Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

func client(t *testing.T, f transport) *embed.Client {
	t.Helper()
	c, err := embed.New(embed.Options{URL: "http://127.0.0.1:1/v1/", Model: "m", Key: key, Transport: f})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// lengths answers with a vector of the length of each text, the last one first.
func lengths(r *http.Request) (int, http.Header, string, error) {
	var req struct {
		Model, EncodingFormat string
		Input                 []string
	}
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		return 0, nil, "", err
	}
	var items []string
	for i := len(req.Input) - 1; i >= 0; i-- {
		items = append(items, fmt.Sprintf(`{"object":"embedding","index":%d,"embedding":[%d,1]}`, i, len(req.Input[i])))
	}
	return 200, nil, `{"object":"list","data":[` + strings.Join(items, ",") + `],"usage":{"total_tokens":1}}`, nil
}

func TestEmbedSpeaksOpenAI(t *testing.T) {
	c := client(t, func(r *http.Request) (int, http.Header, string, error) {
		if r.Method != "POST" || r.URL.String() != "http://127.0.0.1:1/v1/embeddings" ||
			r.Header.Get("Authorization") != "Bearer "+key || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %s %v", r.Method, r.URL, r.Header)
		}
		return lengths(r)
	})
	got, err := c.Embed(t.Context(), []string{"a", "bb", "ccc"})
	if fmt.Sprint(got) != "[[1 1] [2 1] [3 1]]" || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestAddressTellsEndpointsApart(t *testing.T) {
	for address, want := range map[string]string{
		"http://127.0.0.1:11434/v1/": "127.0.0.1:11434/v1", "https://API.example.com": "api.example.com",
		"https://api.example.com/Team/v1": "api.example.com/Team/v1",
	} {
		c, err := embed.New(embed.Options{URL: address, Model: "m"})
		if err != nil || c.Address() != want {
			t.Errorf("%s: got %v, %v, want %s", address, c, err, want)
		}
	}
	if _, err := embed.New(embed.Options{URL: "http://host/" + strings.Repeat("a", 512), Model: "m"}); err == nil {
		t.Error("a name that is too long for the header of vectors is taken")
	}
}

func TestPassingFailuresAreRetried(t *testing.T) {
	for name, tc := range map[string]struct {
		fail        func() (int, http.Header, string, error)
		least, most time.Duration
	}{
		"503":         {func() (int, http.Header, string, error) { return 503, nil, "busy", nil }, 0, 3 * time.Second},
		"429":         {func() (int, http.Header, string, error) { return 429, nil, "", nil }, 0, 3 * time.Second},
		"reset":       {func() (int, http.Header, string, error) { return 0, nil, "", errors.New("reset") }, 0, 3 * time.Second},
		"Retry-After": {func() (int, http.Header, string, error) { return 429, http.Header{"Retry-After": {"7"}}, "", nil }, 14 * time.Second, 14 * time.Second},
		"a day":       {func() (int, http.Header, string, error) { return 503, http.Header{"Retry-After": {"86400"}}, "", nil }, time.Minute, time.Minute},
		"a date": {func() (int, http.Header, string, error) {
			return 503, http.Header{"Retry-After": {time.Now().Add(9 * time.Second).UTC().Format(http.TimeFormat)}}, "", nil
		}, 16 * time.Second, 18 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				failures := 2
				c := client(t, func(r *http.Request) (int, http.Header, string, error) {
					if failures--; failures >= 0 {
						return tc.fail()
					}
					return lengths(r)
				})
				began := time.Now()
				got, err := c.Embed(t.Context(), []string{"a"})
				if err != nil || len(got) != 1 {
					t.Errorf("got %v, %v", got, err)
				}
				if took := time.Since(began); took < tc.least || took > tc.most {
					t.Errorf("took %v, want %v to %v", took, tc.least, tc.most)
				}
			})
		})
	}
}

func TestLastingFailuresEnd(t *testing.T) {
	for name, tc := range map[string]struct {
		status   int
		body     string
		requests int
		want     string
	}{
		"401":             {401, "bad key " + key, 1, "401"},
		"key at the cut":  {401, strings.Repeat("x", 195) + key, 1, "401 Unauthorized"},
		"wrapped key":     {401, "bad key " + key[:5] + "\x1b\u200b" + key[5:], 1, "401"},
		"unknown status":  {499, "", 1, "answers 499"},
		"404":             {404, `{"error":"model not found"}`, 1, "model not found"},
		"500":             {500, "", 4, "500"},
		"redirect":        {302, "", 1, "302"},
		"no JSON":         {200, "<html>", 1, "not a list of embeddings"},
		"too few":         {200, `{"data":[]}`, 1, "0 vectors for 1 texts"},
		"too many":        {200, `{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[1]}]}`, 1, "2 vectors"},
		"wrong index":     {200, `{"data":[{"index":5,"embedding":[1]}]}`, 1, "wrong index 5"},
		"no dimensions":   {200, `{"data":[{"index":0,"embedding":[]}]}`, 1, "0 dimensions"},
		"zero":            {200, `{"data":[{"index":0,"embedding":[0,0]}]}`, 1, "no direction"},
		"null":            {200, `{"data":[{"index":0,"embedding":null}]}`, 1, "0 dimensions"},
		"NaN":             {200, `{"data":[{"index":0,"embedding":[NaN]}]}`, 1, "not a list"},
		"infinite":        {200, `{"data":[{"index":0,"embedding":[1e99]}]}`, 1, "not a list"},
		"base64":          {200, `{"data":[{"index":0,"embedding":"AAAA"}]}`, 1, "not a list"},
		"endless":         {200, strings.Repeat(" ", 1<<20), 1, "more than"},
		"terminal":        {400, "\x1b[2J\x07gone\x9b\u009b\u202e", 1, "gone"},
		"endless refusal": {400, strings.Repeat("x", 1<<20), 1, "400"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				requests := 0
				c := client(t, func(*http.Request) (int, http.Header, string, error) {
					requests++
					return tc.status, nil, tc.body, nil
				})
				_, err := c.Embed(t.Context(), []string{"a"})
				if err == nil || !strings.Contains(err.Error(), tc.want) || len(err.Error()) > 500 {
					t.Fatalf("got %.600v, want %q", err, tc.want)
				}
				if strings.Contains(err.Error(), key[:5]) {
					t.Errorf("a part of the key is in %v", err)
				}
				if strings.ContainsFunc(err.Error(), unicode.IsControl) {
					t.Errorf("a control character is in %q", err)
				}
				if requests != tc.requests {
					t.Errorf("%d requests, want %d", requests, tc.requests)
				}
			})
		})
	}
}

func TestDimensionsMustAgree(t *testing.T) {
	c := client(t, func(*http.Request) (int, http.Header, string, error) {
		return 200, nil, `{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[1,2]}]}`, nil
	})
	if _, err := c.Embed(t.Context(), []string{"a", "b"}); err == nil || !strings.Contains(err.Error(), "vector 1 has 2 dimensions") {
		t.Errorf("got %v", err)
	}
}

func TestBrokenAnswerHidesTheKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := client(t, func(*http.Request) (int, http.Header, string, error) {
			return 0, nil, "", errors.New("malformed HTTP status code " + key)
		})
		if _, err := c.Embed(t.Context(), []string{"a"}); err == nil || strings.Contains(err.Error(), key) {
			t.Errorf("got %v", err)
		}
	})
}

func TestContextEndsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := client(t, func(*http.Request) (int, http.Header, string, error) {
			return 503, http.Header{"Retry-After": {"20"}}, "", nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		began := time.Now()
		if _, err := c.Embed(ctx, []string{"a"}); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 2*time.Second {
			t.Errorf("got %v after %v", err, time.Since(began))
		}
	})
}

func TestHangingEndpointTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := client(t, func(r *http.Request) (int, http.Header, string, error) {
			<-r.Context().Done()
			return 0, nil, "", r.Context().Err()
		})
		began := time.Now()
		if _, err := c.Embed(t.Context(), []string{"a"}); err == nil || time.Since(began) > 5*time.Minute {
			t.Errorf("got %v after %v", err, time.Since(began))
		}
	})
}

func TestNewChecksOptions(t *testing.T) {
	for name, o := range map[string]embed.Options{
		"no URL":       {Model: "m"},
		"file":         {URL: "file:///etc", Model: "m"},
		"no host":      {URL: "http://", Model: "m"},
		"password":     {URL: "http://user:" + key + "@host/v1", Model: "m"},
		"query":        {URL: "http://host/v1?key=" + key, Model: "m"},
		"empty query":  {URL: "http://host/v1?", Model: "m"},
		"fragment":     {URL: "http://host/v1#" + key, Model: "m"},
		"no model":     {URL: "http://host/v1"},
		"two-line key": {URL: "http://host/v1", Model: "m", Key: "a\nb"},
		"damaged":      {URL: "http://ho st:" + key, Model: "m"},
	} {
		_, err := embed.New(o)
		if err == nil || strings.Contains(err.Error(), key) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	c, err := embed.New(embed.Options{URL: "https://host", Model: "m"})
	if err != nil || c.Model() != "m" {
		t.Error(err)
	}
}

func FuzzResponse(f *testing.F) {
	f.Add(`{"data":[{"index":0,"embedding":[1,2]}]}`)
	f.Add(`{"data":[{"index":1,"embedding":[1e-46]}]}`)
	f.Fuzz(func(t *testing.T, body string) {
		c := client(&testing.T{}, func(*http.Request) (int, http.Header, string, error) { return 200, nil, body, nil })
		got, err := c.Embed(t.Context(), []string{"a"})
		if err == nil && (len(got) != 1 || len(got[0]) == 0) {
			t.Errorf("got %v", got)
		}
	})
}

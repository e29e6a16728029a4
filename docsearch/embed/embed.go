// Package embed gets vectors of texts from an endpoint that speaks the embeddings API
// of OpenAI, as Ollama, TEI, vLLM and llama.cpp do.
package embed

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/mcp-sse/mcp-sse/docsearch/internal/printable"
)

// Options say which endpoint to use, and how.
type Options struct {
	URL       string            // of the API, e.g. http://localhost:11434/v1; texts go to URL/embeddings
	Model     string            // as the endpoint calls it
	Key       string            // sent as a bearer token, and never part of an error; "": none
	Transport http.RoundTripper // nil: http.DefaultTransport
}

const (
	timeout        = time.Minute // of one request
	maxAttempts    = 4
	firstWait      = 250 * time.Millisecond
	maxWait        = 30 * time.Second // between attempts, whatever the endpoint asks for
	maxDimensions  = 8192
	bytesPerNumber = 32       // of a vector in JSON
	extraBytes     = 64 << 10 // of a response, beside the vectors
	maxErrorBytes  = 200      // of what an endpoint says, in an error
	maxNames       = 512      // bytes of the URL and the model, which are in the header of vectors
)

// Client makes vectors. It is safe for concurrent use.
type Client struct {
	opts     Options
	endpoint string
	address  string
	http     *http.Client // follows no redirects
}

// New returns a Client. It fails if the URL is not an absolute one of HTTP, if it has a
// user, query or fragment, and if there is no model. It does not connect.
func New(o Options) (*Client, error) {
	u, err := url.Parse(o.URL)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, errors.New("embeddings URL must begin with http:// or https:// and a host")
	}
	if u.User != nil {
		return nil, errors.New("embeddings URL must not contain a user or password; use the key")
	}
	if u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return nil, errors.New("embeddings URL must not contain a query or fragment, which errors would show; " +
			"use the key")
	}
	if o.Model == "" {
		return nil, errors.New("embeddings need a model")
	}
	if strings.ContainsAny(o.Key, "\r\n\x00") {
		return nil, errors.New("embeddings key must be one line")
	}
	if len(o.URL)+len(o.Model) > maxNames {
		return nil, fmt.Errorf("embeddings URL and model must not have more than %d bytes together", maxNames)
	}
	u.Path = strings.TrimSuffix(u.Path, "/")
	address := strings.ToLower(u.Host) + u.Path
	u.Path += "/embeddings"
	noRedirects := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Client{opts: o, endpoint: u.String(), address: address,
		http: &http.Client{Transport: o.Transport, Timeout: timeout, CheckRedirect: noRedirects}}, nil
}

// Model returns the name of the model.
func (c *Client) Model() string { return c.opts.Model }

// Address returns the host and the path of the API. Two endpoints may give one name to two models.
func (c *Client) Address() string { return c.address }

// Embed returns a vector for each text; all have the same length. It sends all texts in one
// request: endpoints take at least 32. It repeats a request that fails for reasons that pass
// (429, 5xx, a broken connection), up to four times in all, and waits as long as Retry-After
// says, at most 30 seconds. ctx bounds the whole.
func (c *Client) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	body, err := json.Marshal(request{Model: c.opts.Model, Input: texts, EncodingFormat: "float"})
	if err != nil {
		return nil, err
	}
	wait := backoff.NewExponentialBackOff()
	wait.InitialInterval = firstWait
	vectors, err := backoff.Retry(ctx, func() ([][]float32, error) { return c.post(ctx, body, len(texts)) },
		backoff.WithBackOff(wait), backoff.WithMaxTries(maxAttempts))
	if err != nil {
		return nil, fmt.Errorf("embed with %q: %w", c.opts.Model, err)
	}
	return vectors, nil
}

type request struct {
	Model          string   `json:"model"`
	Input          []string `json:"input"`
	EncodingFormat string   `json:"encoding_format"`
}

type response struct {
	Data []struct {
		Index     int       `json:"index"`
		Embedding []float32 `json:"embedding"`
	} `json:"data"`
}

// post makes one request for n texts.
func (c *Client) post(ctx context.Context, body []byte, n int) ([][]float32, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.endpoint, bytes.NewReader(body))
	if err != nil {
		return nil, backoff.Permanent(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if c.opts.Key != "" {
		req.Header.Set("Authorization", "Bearer "+c.opts.Key)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.transportError(err)
	}
	defer resp.Body.Close()
	limit := int64(n)*maxDimensions*bytesPerNumber + extraBytes
	data, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	switch {
	case resp.StatusCode != http.StatusOK:
		return nil, c.refusal(resp, data)
	case err != nil:
		return nil, fmt.Errorf("read response: %w", err)
	case int64(len(data)) > limit:
		return nil, backoff.Permanent(fmt.Errorf("the response has more than %d bytes", limit))
	}
	vectors, err := decode(data, n)
	if err != nil {
		return nil, backoff.Permanent(err)
	}
	return vectors, nil
}

// refusal returns the error for a status other than 200.
func (c *Client) refusal(resp *http.Response, data []byte) error {
	// The text of the status line is the endpoint's, too, and may hold the key.
	err := fmt.Errorf("the endpoint answers %d %s: %s", resp.StatusCode, http.StatusText(resp.StatusCode),
		c.quote(string(data)))
	if resp.StatusCode != http.StatusTooManyRequests && resp.StatusCode < 500 {
		return backoff.Permanent(err)
	}
	if wait := retryAfter(resp.Header.Get("Retry-After"), time.Now()); wait > 0 {
		return fmt.Errorf("%w; %w", err, &backoff.RetryAfterError{Duration: wait})
	}
	return err
}

// quote returns the beginning of what an endpoint says as one line, without the key and
// without characters that a terminal acts on.
func (c *Client) quote(said string) string {
	said = c.withoutKey(strings.ToValidUTF8(said, ""))
	said = c.withoutKey(printable.Line(said))
	return strings.ToValidUTF8(said[:min(len(said), maxErrorBytes)], "")
}

func (c *Client) withoutKey(s string) string {
	if c.opts.Key == "" {
		return s
	}
	return strings.ReplaceAll(s, c.opts.Key, "…")
}

// transportError returns the error of a request, which may quote a damaged answer.
func (c *Client) transportError(err error) error {
	if text := err.Error(); c.withoutKey(text) != text {
		return errors.New(c.quote(text))
	}
	return err
}

// retryAfter returns how long a Retry-After header asks to wait, at most maxWait.
func retryAfter(header string, now time.Time) time.Duration {
	if n, err := strconv.Atoi(header); err == nil {
		return min(max(0, time.Duration(min(n, 3600))*time.Second), maxWait)
	}
	if at, err := http.ParseTime(header); err == nil {
		return min(max(0, at.Sub(now)), maxWait)
	}
	return 0
}

// decode returns the n vectors of a response, in the order of the texts.
func decode(data []byte, n int) ([][]float32, error) {
	var r response
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, fmt.Errorf("the response is not a list of embeddings: %w", err)
	}
	if len(r.Data) != n {
		return nil, fmt.Errorf("the response has %d vectors for %d texts", len(r.Data), n)
	}
	vectors := make([][]float32, n)
	for _, d := range r.Data {
		if d.Index < 0 || d.Index >= n || vectors[d.Index] != nil {
			return nil, fmt.Errorf("the response has a wrong index %d", d.Index)
		}
		if len(d.Embedding) == 0 || len(d.Embedding) > maxDimensions || len(d.Embedding) != len(r.Data[0].Embedding) {
			return nil, fmt.Errorf("vector %d has %d dimensions", d.Index, len(d.Embedding))
		}
		if err := finite(d.Embedding); err != nil {
			return nil, fmt.Errorf("vector %d: %w", d.Index, err)
		}
		vectors[d.Index] = d.Embedding
	}
	return vectors, nil
}

// finite fails if v is zero, or if its length is no number.
func finite(v []float32) error {
	sum := 0.0
	for _, f := range v {
		sum += float64(f) * float64(f)
	}
	if !(sum > 0) || math.IsInf(sum, 0) {
		return errors.New("it has no direction")
	}
	return nil
}

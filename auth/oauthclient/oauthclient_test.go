package oauthclient

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "s3cret-0123456789"

// endpoint is a token endpoint without a socket: answer answers the n-th request.
type endpoint struct {
	mu     sync.Mutex
	forms  []url.Values
	heads  []http.Header
	answer func(n int, r *http.Request) (status int, body string)
}

func (e *endpoint) RoundTrip(r *http.Request) (*http.Response, error) {
	body, _ := io.ReadAll(r.Body)
	form, _ := url.ParseQuery(string(body))
	e.mu.Lock()
	e.forms, e.heads = append(e.forms, form), append(e.heads, r.Header)
	n := len(e.forms)
	e.mu.Unlock()
	status, answer := e.answer(n, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	if status == 0 {
		return nil, errors.New("no route to host")
	}
	return &http.Response{
		StatusCode: status, Status: fmt.Sprint(status, " ", http.StatusText(status)), Request: r,
		Header: http.Header{"Content-Type": {"application/json"}, "Location": {"https://elsewhere.example"}}, Body: io.NopCloser(strings.NewReader(answer)),
	}, nil
}

func (e *endpoint) requests() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.forms)
}

// tokens answers with the tokens t1, t2 … that live for so many seconds.
func tokens(seconds int) func(n int, _ *http.Request) (int, string) {
	return func(n int, _ *http.Request) (int, string) {
		return 200, fmt.Sprintf(`{"access_token":"t%d","token_type":"bearer","expires_in":%d}`, n, seconds)
	}
}

func newTestSource(e *endpoint, c Config, client string) *source {
	c.TokenURL, c.ClientID = "https://idp.example/token?key="+secret, "gw"
	s := c.newSource(func() string { return client }, slog.New(slog.DiscardHandler))
	s.client.Transport = e
	return s
}

// want checks the header that is got.
func want(t *testing.T, s *source, refused, header string) {
	t.Helper()
	if got, err := s.authorize(t.Context(), refused); got != header || err != nil {
		t.Errorf("got %q, %v, want %q", got, err, header)
	}
}

func wantError(t *testing.T, s *source, refused, text string) {
	t.Helper()
	got, err := s.authorize(t.Context(), refused)
	if got != "" || err == nil || !strings.Contains(err.Error(), text) || strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), "idp.example") {
		t.Errorf("got %q, %v, want %q", got, err, text)
	}
}

func TestGrants(t *testing.T) {
	file := filepath.Join(t.TempDir(), "refresh")
	ssetest.Must(t, os.WriteFile(file, []byte(secret+"\n"), 0o644))
	for want, c := range map[string]Config{
		"grant_type=client_credentials": {ClientSecret: secret},
		"audience=a&client_id=gw&grant_type=client_credentials&resource=https%3A%2F%2Fr&scope=x+y":                                                                             {Scopes: []string{"x", "y"}, Resource: "https://r", Audience: "a"},
		"grant_type=refresh_token&refresh_token=" + secret:                                                                                                                     {Grant: RefreshToken, RefreshTokenFile: file, ClientSecret: secret},
		"grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Atoken-exchange&subject_token=alices&subject_token_type=urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Aaccess_token": {Grant: TokenExchange, ClientSecret: secret},
	} {
		e := &endpoint{answer: tokens(3600)}
		s := newTestSource(e, c, "bearer alices")
		if got, err := s.authorize(t.Context(), ""); got != "Bearer t1" || err != nil {
			t.Errorf("%+v: got %q, %v", c, got, err)
		}
		ssetest.Want(t, "form", e.forms[0].Encode(), want)
		if id, password, ok := (&http.Request{Header: e.heads[0]}).BasicAuth(); ok != (c.ClientSecret != "") || ok && (id != "gw" || password != secret) {
			t.Errorf("the client is %q %q", id, password)
		}
	}
}

// A token is used until shortly before its end, or until it is refused.
func TestTokensAreRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &endpoint{answer: tokens(3600)}
		s := newTestSource(e, Config{}, "")
		want(t, s, "", "Bearer t1")
		time.Sleep(time.Hour - 11*time.Second)
		want(t, s, "", "Bearer t1")
		time.Sleep(2 * time.Second)
		want(t, s, "", "Bearer t2")
		want(t, s, "Bearer t1", "Bearer t2") // another request has got it
		want(t, s, "Bearer t2", "Bearer t3")
		want(t, s, "", "Bearer t3")

		for _, seconds := range []int{8, 0, -5} { // only a 401 ends what lives so shortly
			short := newTestSource(&endpoint{answer: tokens(seconds)}, Config{}, "")
			for range 10 {
				want(t, short, "", "Bearer t1")
			}
			want(t, short, "Bearer t1", "Bearer t2")
		}

		forever := newTestSource(&endpoint{answer: func(int, *http.Request) (int, string) { return 200, `{"access_token":"t"}` }}, Config{}, "")
		want(t, forever, "", "Bearer t")
		time.Sleep(10000 * time.Hour)
		want(t, forever, "", "Bearer t")
	})
}

// Many requests make one of the endpoint. One whose client goes does not end it.
func TestOneRequestAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		e := &endpoint{answer: func(n int, r *http.Request) (int, string) {
			<-release
			return tokens(3600)(n, r)
		}}
		s := newTestSource(e, Config{}, "")
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		all.Go(func() {
			if _, err := s.authorize(ctx, ""); !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
		})
		synctest.Wait()
		for range 20 {
			all.Go(func() { want(t, s, "", "Bearer t1") })
		}
		synctest.Wait()
		cancel()
		synctest.Wait()
		close(release)
		all.Wait()
		ssetest.Want(t, "requests", e.requests(), 1)
	})
}

// An endpoint that is down, slow or refuses is asked seldom, and again later.
func TestEndpointFails(t *testing.T) {
	for text, answer := range map[string]func(n int, r *http.Request) (int, string){
		"the token endpoint gave no token: no route to host": func(int, *http.Request) (int, string) { return 0, "" },
		"context deadline exceeded": func(_ int, r *http.Request) (int, string) {
			<-r.Context().Done()
			return 0, ""
		},
		`answered 400 "invalid_grant"`: func(int, *http.Request) (int, string) {
			return 400, `{"error":"invalid_grant","error_description":"` + secret + `"}`
		},
		`answered 307 "Temporary Redirect"`:     func(int, *http.Request) (int, string) { return 307, secret },
		`answered 500 "Internal Server Error"`:  func(int, *http.Request) (int, string) { return 500, secret },
		"gave no token":                         func(int, *http.Request) (int, string) { return 200, "<html>" + secret },
		"missing access_token":                  func(int, *http.Request) (int, string) { return 200, `{"refresh_token":"` + secret + `"}` },
		`answered 200 "temporarily_unavailable`: func(int, *http.Request) (int, string) { return 200, `{"error":"temporarily_unavailable"}` },
	} {
		t.Run(text, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := &endpoint{answer: answer}
				s := newTestSource(e, Config{ClientSecret: secret}, "")
				s.conf.AuthStyle = 2 // else each failure is two requests
				began := time.Now()
				for range 50 {
					want := text
					if s.limit.Tokens() < 1 {
						want = errTooOften.Error()
					}
					wantError(t, s, "", want)
				}
				took := time.Since(began)
				if n := e.requests(); n > 50 || n < 5 || took < time.Second && n != 5 || took > 50*timeout {
					t.Errorf("%d requests in %v", n, took)
				}
				time.Sleep(time.Minute)
				e.answer = tokens(3600)
				want(t, s, "", "Bearer t"+fmt.Sprint(e.requests()+1))
			})
		})
	}
}

// A server that refuses each token does not make the endpoint give one for each request.
func TestServerThatRefusesAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &endpoint{answer: tokens(3600)}
		s := newTestSource(e, Config{}, "")
		header := ""
		for range 5 {
			header, _ = s.authorize(t.Context(), header)
		}
		want(t, s, "", "Bearer t5")
		wantError(t, s, header, errTooOften.Error())
		time.Sleep(2 * time.Second)
		want(t, s, header, "Bearer t6")
	})
}

func TestClientWithoutAToken(t *testing.T) {
	for _, client := range []string{"", "Basic YTpi", "Bearer", "Bearer "} {
		authorize := Config{TokenURL: "http://127.0.0.1:0", Grant: TokenExchange}.Authorizer(func() string { return client }, nil)
		if header, err := authorize(t.Context(), ""); header != "" || err != errNoToken {
			t.Errorf("%q: got %q, %v", client, header, err)
		}
	}
}

// A new refresh token replaces the one in the file, which may change meanwhile. One that
// cannot be written is kept.
func TestRefreshTokensAreSaved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "d")
		file := filepath.Join(dir, "refresh")
		var log bytes.Buffer
		e := &endpoint{answer: func(n int, r *http.Request) (int, string) {
			return 200, fmt.Sprintf(`{"access_token":"t%d","refresh_token":"r%d"}`, n, n)
		}}
		s := newTestSource(e, Config{Grant: RefreshToken, RefreshTokenFile: file}, "")
		s.log = slog.New(slog.NewTextHandler(&log, nil))
		wantError(t, s, "", "no such file")
		step := func(header, sent, kept string) {
			t.Helper()
			refused := ""
			if token := s.token.Load(); token != nil {
				refused = bearerHeader(token)
			}
			want(t, s, refused, header)
			data, _ := os.ReadFile(file)
			if got := e.forms[len(e.forms)-1].Get("refresh_token"); got != sent || string(data) != kept {
				t.Errorf("sent %q, and the file has %q, want %q and %q", got, data, sent, kept)
			}
			time.Sleep(time.Minute)
		}
		ssetest.Must(t, os.Mkdir(dir, 0o700))
		ssetest.Must(t, os.WriteFile(file, []byte(" r0 \n"), 0o644))
		step("Bearer t1", "r0", "r1\n")
		if info, _ := os.Stat(file); info.Mode().Perm() != 0o600 {
			t.Errorf("the file has mode %v", info.Mode())
		}
		ssetest.Must(t, os.WriteFile(file, []byte("login"), 0o600))
		step("Bearer t2", "login", "r2\n")
		ssetest.Must(t, os.RemoveAll(dir))
		ssetest.Must(t, os.WriteFile(dir, nil, 0o600)) // no directory
		kept, _ := files.Load(file)
		kept.(*refreshFile).unsaved = "r2"
		step("Bearer t3", "r2", "")
		unsaved := kept.(*refreshFile).unsaved
		if unsaved != "r3" || !strings.Contains(log.String(), "refresh token not saved") || strings.Contains(log.String(), "r3") {
			t.Errorf("kept %q and logged %s", unsaved, log.String())
		}
		ssetest.Must(t, os.Remove(dir))
		ssetest.Must(t, os.Mkdir(dir, 0o700))
		s = newTestSource(e, Config{Grant: RefreshToken, RefreshTokenFile: file}, "") // after a reload
		step("Bearer t4", "r3", "r4\n")
		step("Bearer t5", "r4", "r5\n")
		kept.(*refreshFile).unsaved = "used"
		ssetest.Must(t, os.WriteFile(file, []byte("login"), 0o600))
		answer := e.answer
		e.answer = func(int, *http.Request) (int, string) { return 400, `{"error":"invalid_grant"}` }
		wantError(t, s, "Bearer t5", "invalid_grant")
		e.answer = answer
		step("Bearer t7", "login", "r7\n")
		if all, _ := os.ReadDir(dir); len(all) != 1 {
			t.Errorf("%d files are left", len(all))
		}
	})
}

// Two sources may have one file: those of two servers, or of a server before and after a reload.
// Neither sends a token that the other has used.
func TestRefreshTokenOfTwo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "refresh")
		ssetest.Must(t, os.WriteFile(file, []byte("r0"), 0o600))
		valid := "r0"
		var e *endpoint
		e = &endpoint{answer: func(n int, _ *http.Request) (int, string) {
			time.Sleep(6 * time.Second) // the 10 s of the second begin with its own request
			if got := e.forms[n-1].Get("refresh_token"); got != valid {
				return 400, `{"error":"invalid_grant"}`
			}
			valid = fmt.Sprint("r", n)
			return 200, fmt.Sprintf(`{"access_token":"t%d","refresh_token":%q}`, n, valid)
		}}
		var both sync.WaitGroup
		for range 2 {
			both.Go(func() {
				s := newTestSource(e, Config{Grant: RefreshToken, RefreshTokenFile: file}, "")
				if _, err := s.authorize(t.Context(), ""); err != nil {
					t.Error(err)
				}
			})
		}
		both.Wait()
	})
}

// A program that ends loses no refresh token that the endpoint has replaced.
func TestFinish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		files.Clear() // those of other bubbles
		file := filepath.Join(t.TempDir(), "refresh")
		ssetest.Must(t, os.WriteFile(file, []byte("old"), 0o600))
		e := &endpoint{answer: func(int, *http.Request) (int, string) {
			time.Sleep(time.Second)
			return 200, `{"access_token":"t","refresh_token":"new"}`
		}}
		s := newTestSource(e, Config{Grant: RefreshToken, RefreshTokenFile: file}, "")
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _, _ = s.authorize(ctx, "") }() // ends with ctx
		synctest.Wait()
		cancel()
		Finish()
		if data, _ := os.ReadFile(file); string(data) != "new\n" {
			t.Errorf("the file has %q", data)
		}
	})
}

func TestCheck(t *testing.T) {
	good := Config{TokenURL: "https://a/b", ClientID: "c"}
	for at, ok := range map[string]bool{
		"https://a": true, "http://127.0.0.1:80": true, "http://[::1]/b": true, "http://LOCALHOST:1": true,
		"http://a": false, "http://10.0.0.1": false, "http://localhost.a": false, "ftp://localhost": false, "https:///b": false, "http://": false,
	} {
		if err := (Config{TokenURL: at, ClientID: "c"}).Check(); (err == nil) != ok {
			t.Errorf("%s: got %v", at, err)
		}
	}
	for want, change := range map[string]func(c *Config){
		"":            func(*Config) {},
		"token-url: ": func(c *Config) { c.TokenURL = "a/b" },
		"client-id: ": func(c *Config) { c.ClientID = "" },
		"grant: want client-credentials, refresh-token or token-exchange": func(c *Config) { c.Grant = TokenExchange + 1 },
		"refresh-token-file:": func(c *Config) { c.Grant = RefreshToken },
		"refresh-token-file: want the file of the token with the grant refresh-token": func(c *Config) { c.RefreshTokenFile = "x" },
	} {
		c := good
		change(&c)
		if err := c.Check(); (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// A request with the client's newer token does not share the refusal of the older one, which is on its way.
func TestNewerTokenIsExchangedBesideAnOlderOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refuse := make(chan struct{})
		e := &endpoint{answer: func(n int, _ *http.Request) (int, string) {
			if n == 1 {
				<-refuse
				return 400, `{"error":"invalid_grant"}`
			}
			return tokens(3600)(n, nil)
		}}
		s := newTestSource(e, Config{Grant: TokenExchange}, "")
		header := "Bearer older"
		s.subject = func() string { return header }
		older, newer := make(chan error), make(chan error)
		go func() {
			_, err := s.authorize(t.Context(), "")
			older <- err
		}()
		synctest.Wait()
		header = "Bearer newer"
		go func() {
			_, err := s.authorize(t.Context(), "")
			newer <- err
		}()
		synctest.Wait()
		close(refuse)
		if err := <-older; err == nil {
			t.Error("the older token is exchanged")
		}
		if err := <-newer; err != nil {
			t.Errorf("the newer token: %v", err)
		}
	})
}

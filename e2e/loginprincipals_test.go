//go:build all

package e2e

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"html"
	"io"
	"math/big"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/oauth2"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// byPublicURL sends what is for the public address to a gateway, as a proxy does, and has a token for it if that is set.
type byPublicURL struct {
	*http.Transport
	gateway *url.URL
	token   string
}

const publicHost, notesURL = "gw.example.com", "https://gw.example.com/notes/mcp"

func (p byPublicURL) RoundTrip(asked *http.Request) (*http.Response, error) {
	r := asked.Clone(asked.Context())
	if r.URL.Host == publicHost {
		r.Host, r.URL.Scheme, r.URL.Host = publicHost, p.gateway.Scheme, p.gateway.Host
		if p.token != "" {
			r.Header.Set("Authorization", "Bearer "+p.token)
		}
	}
	resp, err := p.Transport.RoundTrip(r)
	if err == nil {
		resp.Request = asked
	}
	return resp, err
}

// publicClient returns a client that reaches a gateway by its public address, with a token or, as a browser, without.
func publicClient(t *testing.T, g *gateway, token string) *http.Client {
	t.Helper()
	at := localURL(t, g)
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	t.Cleanup(transport.CloseIdleConnections)
	jar, _ := cookiejar.New(nil)
	return &http.Client{Transport: byPublicURL{transport, at, token}, Jar: jar}
}

// localURL returns the URL of the server at the address where the gateway listens, as the log has it: it prints the
// public one.
func localURL(t *testing.T, g *gateway) *url.URL {
	t.Helper()
	at, err := url.Parse(g.awaitMatch("the URL here", &g.log, urlInLog))
	ssetest.Must(t, err)
	return at
}

var (
	urlInLog    = regexp.MustCompile(`"msg":"serving".*?"(https?://[^"]+/mcp)"`)
	pageLink    = regexp.MustCompile(`https://` + publicHost + `/login/notes\?ticket=(\w+)`)
	leadsOn     = regexp.MustCompile(`http-equiv="refresh" content="0;url=([^"]+)"`)
	tokensOfTwo = map[string]string{"alice": "alice-0123456789abcdef", "bob": "bob-0123456789abcdef"}
)

// fileOfPrincipals returns a file with a server at which each of two principals has a login of its own.
func fileOfPrincipals(t *testing.T, more string) string {
	t.Helper()
	return fileOfOwnLogins(t, "auth-tokens-file: "+writeTokensOfTwo(t)+"\n"+more)
}

// writeTokensOfTwo writes the file with the tokens of two principals.
func writeTokensOfTwo(t *testing.T) string {
	t.Helper()
	tokens := filepath.Join(t.TempDir(), "tokens")
	ssetest.Must(t, os.WriteFile(tokens, fmt.Appendf(nil, "alice:%s\nbob:%s\n", tokensOfTwo["alice"], tokensOfTwo["bob"]), 0o600))
	return tokens
}

// fileOfOwnLogins returns a file with a server at which each principal has a login of its own.
func fileOfOwnLogins(t *testing.T, more string) string {
	t.Helper()
	_, base := startProtected(t, startIssuer(t), "")
	return fileOfOwnLoginsAt(t, base+"/jwt/mcp", more)
}

// fileOfOwnLoginsAt is fileOfOwnLogins for a server that is there.
func fileOfOwnLoginsAt(t *testing.T, server, more string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "gw.yaml")
	ssetest.Must(t, os.WriteFile(file, fmt.Appendf(nil, "public-url: https://%s\n%sservers:\n  notes: {url: %q, login: per-principal}\n",
		publicHost, more, server), 0o600))
	return file
}

// connectAs connects a client of a principal: one of the file, or one with a token.
func connectAs(t *testing.T, g *gateway, who string) *mcp.ClientSession {
	t.Helper()
	return connectTo(t, g, who, notesURL)
}

// connectTo is connectAs for another URL of the gateway.
func connectTo(t *testing.T, g *gateway, who, at string) *mcp.ClientSession {
	t.Helper()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "e2e", Version: "0"}, nil).Connect(within(t),
		&mcp.StreamableClientTransport{Endpoint: at, HTTPClient: publicClient(t, g, cmp.Or(tokensOfTwo[who], who))}, nil)
	ssetest.Must(t, err)
	t.Cleanup(func() { _ = session.Close() })
	return session
}

// wantMissing checks that a principal is not logged in, and returns the link of its client.
func wantMissing(t *testing.T, g *gateway, who string) (link string) {
	t.Helper()
	text, _ := callText(t, connectAs(t, g, who), "login", nil)
	if link = pageLink.FindString(text); link == "" {
		t.Fatalf("%s gets no link: %s", who, text)
	}
	return link
}

// wantWorks checks that a principal is logged in.
func wantWorks(t *testing.T, g *gateway, who string) {
	t.Helper()
	text, isError := callEcho(t, connectAs(t, g, who))
	ssetest.Want(t, "a call of "+who, text, "hi")
	ssetest.Want(t, "a call of "+who+" fails", isError, false)
}

// In Chromium a principal logs in at its page, whose form, cookie and way to the issuer the browser takes. Others have
// no use of its link, nor of what the issuer has answered.
func TestPrincipalLogsInWithABrowser(t *testing.T) {
	t.Parallel()
	g := startGateway(t, "--config", fileOfPrincipals(t, withTLS(t)))
	logInWithChromium(t, g, map[string]string{"link": wantMissing(t, g, "alice"), "token": tokensOfTwo["alice"], "other": tokensOfTwo["bob"]})
	wantWorks(t, g, "alice")
	wantMissing(t, g, "bob")
}

// In Chromium a principal of oidc-provider shows there who it is, and then logs in at the server's issuer, which is
// another one. Nobody types anything.
func TestPrincipalOfAnIssuerLogsInWithABrowser(t *testing.T) {
	t.Parallel()
	issuer := startIssuer(t)
	g := startGateway(t, "--config", fileOfOwnLogins(t, withTLS(t)+"oauth: {issuer: "+strconv.Quote(issuer)+", page-client-id: page}\nscopes: [mcp]\n"))
	alice := tokenOf(t, issuer, notesURL)
	logInWithChromium(t, g, map[string]string{"link": wantMissing(t, g, alice)})
	wantWorks(t, g, alice)
	wantWorks(t, g, tokenOf(t, issuer, notesURL)) // another client of alice
	if strings.Contains(g.log.String(), "eyJ") {
		t.Errorf("the log has a token:\n%s", g.log.Tail())
	}
}

// tokenOf returns a token of the person of an issuer, as a client gets it.
func tokenOf(t *testing.T, issuer, resource string) string {
	t.Helper()
	const redirect = "http://127.0.0.1/jwt/mcp"
	jar, _ := cookiejar.New(nil)
	browser := &http.Client{Jar: jar, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if strings.HasPrefix(r.URL.String(), redirect) {
			return http.ErrUseLastResponse
		}
		return nil
	}}
	defer browser.CloseIdleConnections()
	client := &oauth2.Config{ClientID: "page", RedirectURL: redirect, Scopes: []string{"mcp"},
		Endpoint: oauth2.Endpoint{AuthURL: issuer + "/auth", TokenURL: issuer + "/token", AuthStyle: oauth2.AuthStyleInParams}}
	verifier, forResource := oauth2.GenerateVerifier(), oauth2.SetAuthURLParam("resource", resource)
	resp, err := browser.Get(client.AuthCodeURL("x", oauth2.S256ChallengeOption(verifier), forResource))
	ssetest.Must(t, err)
	resp.Body.Close()
	at, err := url.Parse(resp.Header.Get("Location"))
	ssetest.Must(t, err)
	token, err := client.Exchange(within(t), at.Query().Get("code"), oauth2.VerifierOption(verifier), forResource)
	ssetest.Must(t, err)
	return token.AccessToken
}

// withTLS returns the lines of a file by which a gateway serves TLS.
func withTLS(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	writeCertificate(t, cert, key)
	return fmt.Sprintf("tls-cert: %s\ntls-key: %s\n", cert, key)
}

// logInWithChromium logs a principal in by principal.mjs, which about is for.
func logInWithChromium(t *testing.T, g *gateway, about map[string]string) {
	t.Helper()
	browser, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatal("a program is missing: apt-get install chromium")
	}
	npm(t, "playwright-core/package.json")
	at := localURL(t, g)
	about["executablePath"], about["gateway"] = browser, at.Host
	text, _ := json.Marshal(about)
	use := exec.CommandContext(t.Context(), node(t), "principal.mjs", string(text))
	use.Dir = clientsDir
	if out, err := use.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, g.log.Tail())
	}
}

// writeCertificate writes a certificate that signs itself, and its key.
func writeCertificate(t *testing.T, certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ssetest.Must(t, err)
	about := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{publicHost}, NotAfter: time.Now().Add(time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, about, about, key.Public(), key)
	ssetest.Must(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	ssetest.Must(t, err)
	ssetest.Must(t, os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}), 0o600))
	ssetest.Must(t, os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
}

// ownLogin is what a principal's browser gets at a login.
type ownLogin struct {
	ticket       string
	cookies      []string // their values
	onward, last string   // pages: after the form, and the last one with its address
}

// logInByPage logs a principal in by the link that its client gets.
func logInByPage(t *testing.T, g *gateway, who string) (got ownLogin) {
	t.Helper()
	link, browser := wantMissing(t, g, who), publicClient(t, g, "")
	note := func(resp *http.Response) {
		for _, cookie := range resp.Cookies() {
			if strings.HasPrefix(cookie.Name, "__Host-") && cookie.Value != "" {
				got.cookies = append(got.cookies, cookie.Value)
			}
		}
	}
	browser.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
		note(r.Response)
		return nil
	}
	read := func(resp *http.Response, err error) string {
		ssetest.Must(t, err)
		defer resp.Body.Close()
		page, err := io.ReadAll(resp.Body)
		ssetest.Must(t, err)
		got.last = resp.Request.URL.String() + " " + string(page)
		note(resp)
		return string(page)
	}
	ssetest.WantText(t, "page", read(browser.Get(link)), "needs your login at the server <strong>notes</strong>")
	address, ticket, _ := strings.Cut(link, "?ticket=")
	form, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address,
		strings.NewReader(url.Values{"ticket": {ticket}, "token": {tokensOfTwo[who]}}.Encode()))
	ssetest.Must(t, err)
	form.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	form.Header.Set("Origin", "https://"+publicHost)
	got.ticket, got.onward = ticket, read(browser.Do(form))
	found := leadsOn.FindStringSubmatch(got.onward)
	if found == nil {
		t.Fatalf("the form leads nowhere:\n%s", g.log.Tail())
	}
	ssetest.WantText(t, "last page", read(browser.Get(html.UnescapeString(found[1]))), "You are logged in.")
	return got
}

// Two principals log in at oidc-provider, each by the link of its own client, and neither uses the login of the other,
// also after the gateway was killed. Neither the files nor the log have a token.
func TestPrincipalsLogInAtARealIssuer(t *testing.T) {
	t.Parallel()
	file := fileOfPrincipals(t, "")
	start := func() *gateway { return startGateway(t, "--config", file) }
	g := start()
	tickets := []string{logInByPage(t, g, "alice").ticket}
	wantWorks(t, g, "alice")
	wantMissing(t, g, "bob")
	log := g.log.String()
	g.kill()
	g = start()
	wantWorks(t, g, "alice")
	wantMissing(t, g, "bob")
	tickets = append(tickets, logInByPage(t, g, "bob").ticket)
	wantWorks(t, g, "bob")
	wantWorks(t, g, "alice")
	log += g.log.String()
	files, _ := filepath.Glob(filepath.Join(ssetest.StateDir(t), "sse-server", "logins", "of-principals", "*.json"))
	ssetest.Want(t, "files", len(files), 2)
	for _, at := range files {
		data, err := os.ReadFile(at)
		ssetest.Must(t, err)
		log += string(data)
	}
	for _, secret := range append(tickets, "eyJ", tokensOfTwo["alice"], tokensOfTwo["bob"]) {
		if strings.Contains(log, secret) {
			t.Errorf("the log or a file has %.4s…:\n%s", secret, g.log.Tail())
		}
	}
}

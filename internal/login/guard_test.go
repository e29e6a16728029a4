package login

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/mcp-sse/mcp-sse/internal/ssetest"
)

// A server elsewhere cannot have an address of this machine or network asked: not by its name, not by what DNS says of
// that, and not by a redirect.
func TestGuard(t *testing.T) {
	const public, loopback, private, linkLocal, provider = "192.0.2.1", "127.0.0.1", "10.1.2.3", "169.254.169.254", "100.64.0.1"
	for server, permitted := range map[string][]string{
		"":        {public},
		public:    {public},
		loopback:  {public, loopback, private},
		private:   {public, private},
		linkLocal: {public, linkLocal},
		provider:  {public, provider},
	} {
		at := netip.Addr{}
		if server != "" {
			at = netip.MustParseAddr(server)
		}
		g := newGuard(nil, at)
		for _, one := range []string{public, loopback, private, linkLocal, provider, "::1", "fe80::1", "::ffff:169.254.169.254"} {
			want := strings.Contains(strings.Join(permitted, " "), one) || one == "::1" && server == loopback || strings.HasSuffix(one, linkLocal) && server == linkLocal
			ssetest.Want(t, "from "+server+" to "+one, g.permits(netip.MustParseAddr(one)), want)
		}
	}
}

func TestGuardDials(t *testing.T) {
	asked := 0
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	defer inside.Close()
	g := newGuard(&http.Transport{}, netip.Addr{})
	get := func(at string) error {
		resp, err := g.reading().Get(at)
		if err == nil {
			resp.Body.Close()
		}
		return err
	}
	for _, at := range []string{inside.URL, "http://localhost:1/", "https://169.254.169.254/latest/", "https://100.64.0.1/", "https://[::ffff:127.0.0.1]/"} {
		if err := get(at); !errors.Is(err, errInside) {
			t.Errorf("%s: got %v", at, err)
		}
	}
	for _, at := range []string{"http://192.0.2.1/", "http://example.com/", "ftp://example.com/", "file:///etc/passwd"} {
		if err := get(at); err == nil {
			t.Errorf("%s was asked", at)
		}
	}
	// A public name may lead anywhere, and elsewhere the next time: the address that is dialled counts.
	if conn, err := g.direct.DialContext(t.Context(), "tcp", inside.Listener.Addr().String()); !errors.Is(err, errInside) {
		t.Errorf("dialled %v, %v", conn, err)
	}
	ssetest.Want(t, "requests", asked, 0)
	// A redirect is looked at as any other URL.
	redirecting := httptest.NewServer(http.RedirectHandler("https://169.254.169.254/", http.StatusFound))
	defer redirecting.Close()
	g = newGuard(&http.Transport{}, netip.MustParseAddr("127.0.0.1"))
	if err := get(redirecting.URL); !errors.Is(err, errInside) {
		t.Errorf("the redirect: got %v", err)
	}
	// Behind a proxy, which asks DNS itself, the names alone are looked at.
	proxied := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { asked++ }))
	defer proxied.Close()
	to, err := url.Parse(proxied.URL)
	ssetest.Must(t, err)
	g = newGuard(&http.Transport{Proxy: http.ProxyURL(to)}, netip.Addr{})
	if err := get("https://169.254.169.254/"); !errors.Is(err, errInside) {
		t.Errorf("through the proxy: got %v", err)
	}
	_ = get("https://mcp.example/")
	ssetest.Want(t, "requests through the proxy", asked, 1) // CONNECT
}
